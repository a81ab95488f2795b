package openai

import (
	"bytes"
	"testing"
)

// FuzzAnswer reads whatever a provider may send: there is an answer or an error, and never a call without a place.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: [DONE]\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\"," +
		"\"function\":{\"name\":\"now\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n"))
	f.Add([]byte(`{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte("data: {\"error\":{\"message\":\"overloaded\"}}\r\n: comment\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		events := 0
		reply, err := readStream(bytes.NewReader(text), func() { events++ })
		if err == nil && events == 0 {
			t.Errorf("an answer %+v without a part", reply)
		}
		if whole, err := readWhole(bytes.NewReader(text)); len(reply.Calls) > maxCalls || err == nil &&
			len(whole.Calls) > maxCalls {
			t.Errorf("%d calls", max(len(reply.Calls), len(whole.Calls)))
		}
	})
}
