package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lessor"
)

// A page asks for its changing part once a second while somebody can see it. The request is the page's own, with these
// headers. There is no stream: a browser has six connections to a server, and streams would hold them.
const (
	// liveHeader has the version of the part that the page shows; "0" if it has none.
	liveHeader = "X-Lessor-Live"
	// nowHeader has the server's time in milliseconds, because the browser's clock may be wrong.
	nowHeader = "X-Lessor-Now"
)

const (
	// liveEvery is how often a part is rendered at most, liveAtLeast how often it is rendered without a commit here:
	// other nodes commit too.
	liveEvery   = time.Second
	liveAtLeast = 5 * time.Second
)

// liveAnswer is a part, as the pieces of which the page makes it: a string is text, and a pair of numbers is a place
// and a number of lines in the version that the page has.
type liveAnswer struct {
	Version string `json:"version"`
	Pieces  []any  `json:"pieces"`
}

// sendPart sends what changed since the version that the page has: 204 for nothing.
func (v *visit) sendPart(p *part) {
	v.w.Header().Set(nowHeader, strconv.FormatInt(int64(lessor.At(time.Now())), 10))
	switch v.r.Header.Get(liveHeader) {
	case p.version:
		v.w.WriteHeader(http.StatusNoContent)
	case p.before:
		v.sendPacked(http.StatusOK, "application/json", p.changed())
	default:
		v.sendPacked(http.StatusOK, "application/json", p.whole())
	}
}

// versionOf names the content of a part. It is a cryptographic hash, because anybody may submit the text in it.
func versionOf(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// pieces returns lines as pieces of old.
func pieces(old, lines []string) (all []any) {
	places := make(map[string]int, len(old))
	for i, line := range old {
		places[line] = i
	}
	var same *[2]int // the last piece, if it is a pair
	next := 0        // the line of old behind it
	var text []string
	flush := func() {
		if text != nil {
			all, text = append(all, strings.Join(text, "\n")), nil
		}
	}
	for _, line := range lines {
		at, known := next, next < len(old) && old[next] == line
		if !known {
			at, known = places[line]
		}
		switch {
		case !known:
			text, same = append(text, line), nil
			continue
		case same != nil && at == next:
			same[1]++
		default:
			flush()
			same = &[2]int{at, 1}
			all = append(all, same)
		}
		next = at + 1
	}
	flush()
	return all
}

// pack returns v as compressed JSON.
func pack(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: it consists of texts and numbers
	}
	return compress(body)
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// sendPacked sends a compressed body, and decompresses it for a client that does not accept it.
func (v *visit) sendPacked(status int, contentType string, packed []byte) {
	h := v.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Vary", "Accept-Encoding")
	var body io.Reader = bytes.NewReader(packed)
	if v.acceptsGzip() {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(packed)))
	} else if r, err := gzip.NewReader(body); err == nil {
		body = r
	}
	v.w.WriteHeader(status)
	_, _ = io.Copy(v.w, body) // an error means that the visitor is gone
}

func (v *visit) acceptsGzip() bool {
	return strings.Contains(v.r.Header.Get("Accept-Encoding"), "gzip")
}
