package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"lessor/agent"
	"lessor/agent/openai"
)

// One question to a model. In an agent, agent.Inner asks it, and Beat extends the lease of the message.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream(w, `{"choices":[{"delta":{"role":"assistant","content":"Take an "}}]}`,
			`{"choices":[{"delta":{"content":"umbrella."},"finish_reason":"stop"}]}`, "[DONE]")
	}))
	defer provider.Close()
	model, err := openai.New(openai.Config{
		BaseURL: provider.URL, Model: "small", Key: "secret", HTTP: provider.Client(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := model.Complete(context.Background(), agent.Question{
		Turns: []agent.Turn{{Role: agent.User, Text: "What shall I take to Bergen?"}},
		Beat:  func() {},
	})
	fmt.Println(reply.Text, err)
	// Output: Take an umbrella. <nil>
}
