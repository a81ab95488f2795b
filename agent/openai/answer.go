package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"lessor/agent"
)

// maxCalls bounds the calls of one answer, because the provider chooses their indexes.
const maxCalls = 128

var (
	errCut      = errors.New("the answer was cut off")
	errTooLong  = errors.New("the answer came to the end of its tokens")
	errFiltered = errors.New("the provider withheld the answer")
)

// gathering is an answer whose parts are still arriving.
type gathering struct {
	text   strings.Builder
	calls  []agent.ToolCall
	usage  agent.Usage
	finish string
}

// readWhole reads an answer that is not streamed.
func readWhole(r io.Reader) (agent.Reply, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return agent.Reply{}, unread(err)
	}
	var g gathering
	if err := g.add(text); err != nil {
		return agent.Reply{}, err
	}
	return g.reply()
}

// readStream reads server-sent events up to [DONE], calling arrived at each.
func readStream(r io.Reader, arrived func()) (agent.Reply, error) {
	var g gathering
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return agent.Reply{}, unread(err)
		}
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			arrived()
			if string(data) == "[DONE]" {
				return g.reply()
			}
			if err := g.add(data); err != nil {
				return agent.Reply{}, err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && g.finish != "":
			return g.reply() // some providers omit [DONE]
		case err != nil:
			return agent.Reply{}, &failure{err: errCut}
		}
	}
}

// unread returns the error of a failed read. An answer that is too big would be so again.
func unread(err error) error {
	if errors.Is(err, errTooBig) {
		return err
	}
	return &failure{err: fmt.Errorf("read answer: %w", err)}
}

// count returns a number of tokens that a budget can add up, whatever the provider says.
func count(tokens int) int { return min(max(tokens, 0), math.MaxInt32) }

// add adds one part of an answer, or a whole answer.
func (g *gathering) add(part []byte) error {
	var a chatAnswer
	if err := json.Unmarshal(part, &a); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset == int64(len(part)) {
			return &failure{err: errCut} // the connection broke inside a part
		}
		return fmt.Errorf("decode answer: %w", err)
	}
	if len(a.Error) > 0 && string(a.Error) != "null" {
		return &failure{err: fmt.Errorf("the provider gave up: %s", a.Error[:min(len(a.Error), maxError)])}
	}
	if a.Usage != nil {
		g.usage = agent.Usage{InputTokens: count(a.Usage.PromptTokens), OutputTokens: count(a.Usage.CompletionTokens)}
	}
	if len(a.Choices) == 0 {
		return nil // only the usage
	}
	choice := a.Choices[0]
	if choice.FinishReason != "" {
		g.finish = choice.FinishReason
	}
	for _, m := range []chatMessage{choice.Message, choice.Delta} {
		if m.Content != nil {
			g.text.WriteString(*m.Content)
		}
		for _, c := range m.ToolCalls {
			if err := g.addCall(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCall adds a call or a part of one. The first part has the id and the name, the others continue the arguments.
func (g *gathering) addCall(c chatCall) error {
	at := len(g.calls)
	if c.Index != nil {
		at = *c.Index
	}
	if at < 0 || at >= maxCalls || at > len(g.calls) {
		return fmt.Errorf("the answer calls tool number %d after %d", at, len(g.calls))
	}
	if at == len(g.calls) {
		g.calls = append(g.calls, agent.ToolCall{})
	}
	call := &g.calls[at]
	if c.ID != "" {
		call.ID = c.ID
	}
	call.Name += c.Function.Name
	call.Arguments = append(call.Arguments, c.Function.Arguments...)
	return nil
}

// reply returns the gathered answer.
func (g *gathering) reply() (agent.Reply, error) {
	switch g.finish {
	case "length":
		return agent.Reply{}, errTooLong
	case "content_filter":
		return agent.Reply{}, errFiltered
	case "":
		return agent.Reply{}, &failure{err: errCut}
	}
	return agent.Reply{Text: g.text.String(), Calls: g.calls, Usage: g.usage}, nil
}
