// Package openai asks models behind the chat-completions interface, which OpenAI, vLLM, Ollama, llama.cpp, LiteLLM
// and many others offer. Answers are streamed, and every part that arrives is a beat, so that a model that thinks
// aloud keeps its lease and one that hangs does not.
//
// It tries again where the provider asks for it (429), fails (5xx) or cuts an answer off. The key is sent and nowhere
// else: neither in errors nor in logs.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lessor/agent"
)

// Defaults of a Config.
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultTries   = 4
	DefaultTimeout = 10 * time.Minute
	// DefaultSilence is one extension of a lease: by then the message has gone to another worker anyway.
	DefaultSilence = 5 * time.Minute
)

// Key is a secret that does not print.
type Key string

const hiddenKey = "[key]"

// String hides the key.
func (Key) String() string { return hiddenKey }

// GoString hides the key from %#v.
func (Key) GoString() string { return hiddenKey }

// MarshalText hides the key from JSON and logs.
func (Key) MarshalText() ([]byte, error) { return []byte(hiddenKey), nil }

// Config says which model to ask, and where. Only Model is required.
type Config struct {
	// BaseURL is what stands before /chat/completions. Empty means DefaultBaseURL.
	BaseURL string
	// Key is sent as a bearer token; empty sends none.
	Key   Key
	Model string
	// MaxTokens bounds one answer. Zero leaves it to the provider.
	MaxTokens int
	// Temperature is how freely the model chooses its words. nil leaves it to the provider.
	Temperature *float64
	// HTTP sends the requests. nil means a client of its own.
	HTTP *http.Client
	// Tries is how often one question is asked at most. Zero means DefaultTries.
	Tries int
	// Timeout bounds one try, Silence the time in it without any part of an answer. Zero means DefaultTimeout,
	// DefaultSilence.
	Timeout, Silence time.Duration
}

// Adapter asks one model. It may be used by several at once.
type Adapter struct {
	cfg Config // without the key
	url string
	key func() string // a function, since %v prints every field
}

// New checks cfg. It does not connect.
func New(cfg Config) (*Adapter, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(cfg.BaseURL)
	switch {
	case cfg.Model == "":
		return nil, errors.New("openai: no model is named")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("openai: the base URL must be like " + DefaultBaseURL)
	case strings.ContainsAny(string(cfg.Key), "\r\n"):
		return nil, errors.New("openai: the key has more than one line")
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{}
	}
	if cfg.Tries <= 0 {
		cfg.Tries = DefaultTries
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Silence <= 0 {
		cfg.Silence = DefaultSilence
	}
	key := string(cfg.Key)
	cfg.Key = ""
	return &Adapter{
		cfg: cfg, url: strings.TrimSuffix(cfg.BaseURL, "/") + "/chat/completions",
		key: func() string { return key },
	}, nil
}

// Complete implements agent.Adapter.
func (a *Adapter) Complete(ctx context.Context, q agent.Question) (agent.Reply, error) {
	body, err := a.encode(q)
	if err != nil {
		return agent.Reply{}, fmt.Errorf("encode question: %w", err)
	}
	for n := 1; ; n++ {
		reply, err := a.try(ctx, body, q.Beat)
		if err == nil {
			return reply, nil
		}
		f, again := errors.AsType[*failure](err)
		if !again || n >= a.cfg.Tries || ctx.Err() != nil {
			return agent.Reply{}, err
		}
		if !pause(ctx, f.pauseAfter(n)) {
			return agent.Reply{}, context.Cause(ctx)
		}
	}
}

// pause waits and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
