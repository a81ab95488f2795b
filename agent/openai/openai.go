// Package openai calls models through the chat-completions API, which OpenAI, vLLM, Ollama, llama.cpp, LiteLLM and
// many others offer. Answers are streamed, and every part that arrives is a beat: a model that produces output keeps
// its lease, and one that hangs loses it.
//
// The adapter repeats a call when the provider asks for it (429), fails (5xx) or cuts an answer off, and beats during
// the pause before. The key appears in no error and no log.
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
	"lessor/internal/pause"
)

// The defaults of a Config.
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultTries   = 4
	DefaultTimeout = 10 * time.Minute
	// DefaultSilence is one extension of a lease. After that time another worker has the message anyway.
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

// Config configures an Adapter. Only Model is required.
type Config struct {
	// BaseURL is the part of the URL before /chat/completions. The default is DefaultBaseURL.
	BaseURL string
	// Key is the bearer token. The default is none.
	Key   Key
	Model string
	// MaxTokens bounds one answer. The provider chooses the default.
	MaxTokens int
	// Temperature is the sampling temperature. The provider chooses the default.
	Temperature *float64
	// HTTP sends the requests. The default is a new client.
	HTTP *http.Client
	// Tries is the largest number of tries for one question. The default is DefaultTries.
	Tries int
	// Timeout bounds one try, and Silence the time in it without any part of an answer. The defaults are
	// DefaultTimeout and DefaultSilence.
	Timeout, Silence time.Duration
}

// Adapter calls one model. It is safe for concurrent use.
type Adapter struct {
	cfg Config // without the key
	url string
	key func() string // a function, because %v would print a field
}

// New checks cfg and returns an Adapter. It does not connect.
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
		if !rest(ctx, f.pauseAfter(n), q.Beat) {
			return agent.Reply{}, context.Cause(ctx)
		}
	}
}

// rest waits for d, and reports whether ctx is still alive. It beats while it waits: a pause that the provider asks for
// may be longer than a lease.
func rest(ctx context.Context, d time.Duration, beat func()) bool {
	for ; d > beatEvery; d -= beatEvery {
		if !pause.For(ctx, beatEvery) {
			return false
		}
		if beat != nil {
			beat()
		}
	}
	return pause.For(ctx, d)
}
