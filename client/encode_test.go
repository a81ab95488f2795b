package client

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"lessor"
)

// TestAppendsAreWrittenAsEncodingJSONWritesThem writes random appends both ways, reads both, and compares.
func TestAppendsAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.MakeCustom[lessor.JournalAppend](wire).Draw(t, "append")
		slow, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fast, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		var want, got lessor.JournalAppend
		if err := json.Unmarshal(slow, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(fast, &got); err != nil {
			t.Fatalf("%s: %v", fast, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s is not what encoding/json writes (-want +got):\n%s", fast, diff)
		}
	})
}

// TestAppendThatIsNoJSONIsRefused has data that encoding/json refuses too.
func TestAppendThatIsNoJSONIsRefused(t *testing.T) {
	for _, raw := range []string{`{`, `{"a":1}}`, `{"a":1} x`, `'x'`, "\"\n\"", " "} {
		entry := lessor.JournalAsk{Key: new("k"), Data: []byte(raw)}
		body := lessor.JournalAppend{WorkerID: new("w"), Entries: []lessor.JournalAsk{entry}}
		if b, err := encode(body); err == nil {
			t.Errorf("%s is written as %s", raw, b)
		}
	}
}

func TestBodiesKeepMarkup(t *testing.T) {
	payload := json.RawMessage(`{"page":"<b>this & that</b>"}`)
	if b, err := encode(lessor.Submission{Payload: payload}); err != nil || !bytes.Contains(b, payload) {
		t.Errorf("the payload is written as %s, %v", b, err)
	}
}
