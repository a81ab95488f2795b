package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"lessor/agent"
	"lessor/agent/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret"

// inline serves requests without a network, so that it works in a bubble. Bodies are streamed.
type inline struct{ http.Handler }

func (h inline) RoundTrip(r *http.Request) (*http.Response, error) {
	body, pipe := io.Pipe()
	w := &answer{header: http.Header{}, body: pipe, ready: make(chan int, 1)}
	go func() {
		defer pipe.Close()
		h.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
	}()
	select {
	case code := <-w.ready:
		return &http.Response{StatusCode: code, Status: fmt.Sprintf("%d %s",
			code, http.StatusText(code)), Header: w.header, Body: tied{body, r}, Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// tied is a body that breaks when the request's context is done, as a real one does.
type tied struct {
	*io.PipeReader
	r *http.Request
}

func (b tied) Read(p []byte) (int, error) {
	defer contextStop(b)()
	return b.PipeReader.Read(p)
}

func contextStop(b tied) func() {
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-b.r.Context().Done():
			b.PipeReader.CloseWithError(b.r.Context().Err())
		case <-done:
		}
	}()
	return func() { close(done); <-gone }
}

type answer struct {
	header  http.Header
	body    io.Writer
	ready   chan int
	written bool
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) Flush()              {}

func (a *answer) WriteHeader(code int) {
	if !a.written {
		a.written = true
		a.ready <- code
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// adapter returns an adapter that is answered by handler.
func adapter(t *testing.T, handler http.HandlerFunc, cfg openai.Config) *openai.Adapter {
	t.Helper()
	cfg.BaseURL, cfg.Model, cfg.Key, cfg.HTTP = "http://model.test/v1/", "small", key,
		&http.Client{Transport: inline{handler}}
	a, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// stream answers with server-sent events.
func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
		w.(http.Flusher).Flush()
	}
}

const (
	hello = `{"choices":[{"delta":{"role":"assistant","content":"Hel"}}]}`
	lo    = `{"choices":[{"delta":{"content":"lo"}}]}`
	stop  = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	usage = `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}`
)

var question = agent.Question{Turns: []agent.Turn{{Role: agent.User, Text: "Hi"}}}

// TestCountsOfTokensCanBeAddedUp has a provider count wrongly: a budget neither grows nor overflows by that.
func TestCountsOfTokensCanBeAddedUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream(w, hello, lo, stop,
			`{"choices":[],"usage":{"prompt_tokens":-12,"completion_tokens":9223372036854775807}}`, "[DONE]")
	}))
	defer server.Close()
	a, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "small", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Complete(t.Context(), question)
	if want := (agent.Usage{OutputTokens: math.MaxInt32}); err != nil || got.Usage != want {
		t.Errorf("the usage is %+v, %v; want %+v", got.Usage, err, want)
	}
}

func TestStreamedAnswerBeatsAtEachPart(t *testing.T) {
	beats := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("asked %s as %q", r.URL, r.Header.Get("Authorization"))
		}
		stream(w, hello, lo, stop, usage, "[DONE]")
	}))
	defer server.Close()
	a, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "small", Key: key, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	q := question
	q.Beat = func() { beats++ }
	got, err := a.Complete(t.Context(), q)
	want := agent.Reply{Text: "Hello", Usage: agent.Usage{InputTokens: 12, OutputTokens: 3}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("err %v, reply (-want +got):\n%s", err, diff)
	}
	if beats != 6 {
		t.Errorf("%d beats, want one at the beginning and one at each of five events", beats)
	}
}

func TestQuestionIsSentWithTurnsAndTools(t *testing.T) {
	var got map[string]any
	a := adapter(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		stream(w, hello, stop, "[DONE]")
	}, openai.Config{MaxTokens: 500, Temperature: new(0.5)})
	_, err := a.Complete(t.Context(), agent.Question{
		Turns: []agent.Turn{
			{Role: agent.System, Text: "Be brief."},
			{Role: agent.User, Text: "Read it."},
			{
				Role:  agent.Assistant,
				Calls: []agent.ToolCall{{ID: "c1", Name: "read", Arguments: []byte(`{"path":"a"}`)}},
			},
			{Role: agent.ToolRole, CallID: "c1", Text: ""},
		},
		Tools: []agent.Tool{{Name: "read", Description: "Reads.", Schema: []byte(`{"type":"object"}`)}, {Name: "now"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"model":"small","max_tokens":500,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true},
		"messages":[
			{"role":"system","content":"Be brief."},
			{"role":"user","content":"Read it."},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
				"function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},
			{"role":"tool","content":"","tool_call_id":"c1"}],
		"tools":[
			{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}},
			{"type":"function","function":{"name":"now",
				"parameters":{"type":"object","properties":{}}}}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestToolCallsComeTogetherFromTheirParts(t *testing.T) {
	a := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(
			w,
			`{"choices":[{"delta":{"content":"Let me see."}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",`+
				`"function":{"name":"read","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"now","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
		) // and no [DONE]
	}, openai.Config{})
	got, err := a.Complete(t.Context(), question)
	want := agent.Reply{Text: "Let me see.", Calls: []agent.ToolCall{
		{ID: "c1", Name: "read", Arguments: []byte(`{"path":"a"}`)}, {ID: "c2", Name: "now", Arguments: []byte(`{}`)},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("err %v, reply (-want +got):\n%s", err, diff)
	}
}

func TestAnswerThatIsNotStreamedIsRead(t *testing.T) {
	a := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"choices":[{"message":{"role":"assistant","content":"Hello",
			"tool_calls":[{"id":"c1","function":{"name":"now","arguments":"{}"}}]},
			"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	}, openai.Config{})
	got, err := a.Complete(t.Context(), question)
	if err != nil || got.Text != "Hello" || len(got.Calls) != 1 || got.Calls[0].Name != "now" ||
		got.Usage.OutputTokens != 2 {
		t.Errorf("reply %+v, err %v", got, err)
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	a := adapter(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bad token "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	}, openai.Config{})
	_, err := a.Complete(t.Context(), question)
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized: bad token Bearer [key]") {
		t.Errorf("err %v", err)
	}
	in := adapter(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, fmt.Sprintf(`{"error":{"message":%q}}`, r.Header.Get("Authorization")))
	}, openai.Config{Tries: 1})
	_, streamed := in.Complete(t.Context(), question)
	var log bytes.Buffer
	cfg := openai.Config{Model: "small", Key: key}
	slog.New(slog.NewJSONHandler(&log, nil)).Info("starting", "config", cfg, "key", cfg.Key)
	slog.New(slog.NewTextHandler(&log, nil)).Info("starting", "config", cfg, "key", cfg.Key)
	for where, text := range map[string]string{
		"error": err.Error(), "streamed error": streamed.Error(), "log": log.String(),
		"print":   fmt.Sprintf("%v %+v %#v %s %q", cfg, cfg, cfg, cfg.Key, cfg.Key),
		"adapter": fmt.Sprintf("%v %+v", a, a),
	} {
		if strings.Contains(text, key) {
			t.Errorf("%s shows the key: %s", where, text)
		}
	}
}

func TestBadConfigsAreRefused(t *testing.T) {
	for name, cfg := range map[string]openai.Config{
		"no model":   {},
		"no URL":     {Model: "m", BaseURL: "model.test/v1"},
		"bad scheme": {Model: "m", BaseURL: "ftp://model.test"},
		"broken URL": {Model: "m", BaseURL: "http://a b"},
		"broken key": {Model: "m", Key: "a\nHost: b"},
	} {
		if _, err := openai.New(cfg); err == nil {
			t.Errorf("%s: accepted, want a refusal", name)
		}
	}
	if _, err := openai.New(openai.Config{Model: "m"}); err != nil {
		t.Error(err)
	}
}

func TestSilentModelIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		beats := 0
		a := adapter(t, func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				stream(w, hello)
				time.Sleep(4 * time.Minute)
			}
			_, _ = io.WriteString(w, ": still here\n\n") // a sign of life, not of progress
			<-r.Context().Done()
		}, openai.Config{Tries: 1, Timeout: time.Hour})
		q := question
		q.Beat = func() { beats++ }
		_, err := a.Complete(t.Context(), q)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "nothing came for too long") ||
			took != 13*time.Minute {
			t.Errorf("given up after %s with %v, want five minutes after the last part", took, err)
		}
		if beats != 4 {
			t.Errorf("%d beats, want 4", beats)
		}
	})
}

func TestAnswerIsBoundedInTimeAndSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := adapter(t, func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(time.Minute)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					stream(w, hello)
				case <-r.Context().Done():
					return
				}
			}
		}, openai.Config{Tries: 1})
		if _, err := slow.Complete(t.Context(), question); err == nil || time.Since(began) != 10*time.Minute {
			t.Errorf("ended after %s with %v", time.Since(began), err)
		}
		for _, kind := range []string{"text/event-stream", "application/json"} {
			huge := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				for {
					if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
						return
					}
				}
			}, openai.Config{Tries: 1})
			if _, err := huge.Complete(t.Context(), question); err == nil ||
				!strings.Contains(err.Error(), "longer than 16 MiB") {
				t.Errorf("%s: ended with %v", kind, err)
			}
		}
	})
}

func TestCallerMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the caller is gone")
		a := adapter(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, openai.Config{})
		ctx, cancel := withCause(t, time.Minute, gone)
		defer cancel()
		began := time.Now()
		if _, err := a.Complete(ctx, question); !errors.Is(err, gone) || time.Since(began) != time.Minute {
			t.Errorf("ended after %s with %v", time.Since(began), err)
		}
	})
}
