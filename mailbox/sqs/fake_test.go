package sqs_test

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"time"
)

// fake speaks the JSON protocol of SQS as far as a mailbox uses it. It checks nothing of the caller's identity.
type fake struct {
	mu      sync.Mutex
	queues  map[string]*queue // by URL
	refused string            // the operation that the caller may not use
	lag     time.Duration     // of the answers to ReceiveMessage
}

type queue struct {
	dead     string // URL
	policy   string
	messages []*stored
}

type stored struct {
	id, body, handle string
	attributes       map[string]any
	count            int
	visibleAt        time.Time
}

// Do serves a request without a network, so that it works in a bubble.
func (f *fake) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// create makes a queue with one for its dead letters and returns its URL.
func (f *fake) create(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	const base = "https://sqs.test/000000000000/"
	policy := fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:test:000000000000:%s-dead","maxReceiveCount":"5"}`, name)
	f.queues[base+name] = &queue{dead: base + name + "-dead", policy: policy}
	f.queues[base+name+"-dead"] = &queue{}
	return base + name
}

// input has the fields of all requests.
type input struct {
	QueueName           string
	QueueURL            string
	MessageBody         string
	MessageAttributes   map[string]any
	MaxNumberOfMessages int
	VisibilityTimeout   *int
	WaitTimeSeconds     int
	ReceiptHandle       string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in input
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Authorization") == "" {
		refuse(w, "InvalidSecurity")
		return
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	by := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		out, code := f.answer(operation, in)
		if messages, ok := out["Messages"].([]any); ok && len(messages) == 0 && time.Now().Before(by) {
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-r.Context().Done():
				return
			}
		}
		if code != "" {
			refuse(w, code)
			return
		}
		if out["Messages"] != nil {
			<-time.After(f.lag)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(out)
		return
	}
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": code})
}

func (f *fake) answer(operation string, in input) (out map[string]any, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if operation == "GetQueueUrl" {
		for url := range f.queues {
			if path.Base(url) == in.QueueName {
				return map[string]any{"QueueUrl": url}, ""
			}
		}
		return nil, "QueueDoesNotExist"
	}
	if operation == f.refused {
		return nil, "AccessDenied"
	}
	q := f.queues[in.QueueURL]
	if q == nil {
		return nil, "QueueDoesNotExist"
	}
	switch operation {
	case "GetQueueAttributes":
		return map[string]any{"Attributes": map[string]string{"RedrivePolicy": q.policy}}, ""
	case "SendMessage":
		m := &stored{id: rand.Text(), body: in.MessageBody, attributes: in.MessageAttributes, visibleAt: time.Now()}
		if m.body == "" || len(m.body) > 1<<20 || strings.ContainsAny(m.body, "\x00\x1b\uFFFE") {
			return nil, "InvalidMessageContents"
		}
		q.messages = append(q.messages, m)
		return map[string]any{"MessageId": m.id, "MD5OfMessageBody": sum(m.body)}, ""
	case "ReceiveMessage":
		return f.receive(q, in), ""
	}
	for i, m := range q.messages {
		if m.handle != in.ReceiptHandle || m.handle == "" {
			continue
		}
		switch {
		case operation == "DeleteMessage":
			q.messages = append(q.messages[:i:i], q.messages[i+1:]...)
		case operation != "ChangeMessageVisibility" || in.VisibilityTimeout == nil:
			return nil, "UnsupportedOperation"
		case !time.Now().Before(m.visibleAt):
			return nil, "MessageNotInflight"
		default:
			m.visibleAt = time.Now().Add(time.Duration(*in.VisibilityTimeout) * time.Second)
		}
		return map[string]any{}, ""
	}
	return nil, "ReceiptHandleIsInvalid"
}

// receive hands out what can be seen, and moves what was handed out five times.
func (f *fake) receive(q *queue, in input) map[string]any {
	visibility := 30 // as queues have it
	if in.VisibilityTimeout != nil {
		visibility = *in.VisibilityTimeout
	}
	now := time.Now()
	got, kept := []any{}, []*stored{}
	for _, m := range q.messages {
		seen := !now.Before(m.visibleAt) && len(got) < in.MaxNumberOfMessages
		if seen && m.count >= 5 && q.dead != "" {
			m.handle = ""
			f.queues[q.dead].messages = append(f.queues[q.dead].messages, m)
			continue
		}
		kept = append(kept, m)
		if !seen {
			continue
		}
		m.count++
		m.handle, m.visibleAt = rand.Text(), now.Add(time.Duration(visibility)*time.Second)
		got = append(got, map[string]any{
			"MessageId": m.id, "Body": m.body, "MD5OfBody": sum(m.body), "ReceiptHandle": m.handle,
			"MessageAttributes": m.attributes,
			"Attributes":        map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.count)},
		})
	}
	q.messages = kept
	return map[string]any{"Messages": got}
}

func sum(body string) string {
	s := md5.Sum([]byte(body))
	return hex.EncodeToString(s[:])
}
