package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/schema"
)

// handlers has the schemas that payloads must satisfy, by handler id. It is immutable: a change makes a new one.
type handlers map[string]handler

type handler struct {
	lessor.Handler
	schema *schema.Schema
}

// schemas returns the schemas in force. They are read after all other settings: if they are there, the other settings
// are too.
func (s *Scheduler) schemas() (*handlers, error) {
	if book := s.handlers.Load(); book != nil {
		return book, nil
	}
	return nil, ErrStarting
}

// check refuses a payload that breaks the schema of its handler; prefix goes before the names of wrong fields.
func (h *handlers) check(id string, payload json.RawMessage, prefix string) error {
	if e := h.broken(id, payload, prefix); e != nil {
		return e
	}
	return nil
}

func (h *handlers) broken(id string, payload json.RawMessage, prefix string) *lessor.Error {
	known, ok := (*h)[id]
	if !ok {
		return nil
	}
	faults := known.schema.Check(payload)
	if len(faults) == 0 {
		return nil
	}
	e := &lessor.Error{
		Code: lessor.CodeInvalidValue, Detail: fmt.Sprintf("the payload breaks the schema of handler %s", id),
	}
	for _, f := range faults {
		e.Fields = append(e.Fields, lessor.FieldError{Field: prefix + f.Field, Message: f.Message})
	}
	return e
}

// join adds violations of the handler's schema to the refusal of a job or definition, if there is one.
func (h *handlers) join(refusal error, id string, payload json.RawMessage, prefix string) error {
	var faults rules.Faults
	if err := faults.Add(refusal); err != nil || payload == nil {
		return cmp.Or(err, refusal)
	}
	return cmp.Or(faults.Add(h.check(id, payload, prefix)), faults.Err())
}

// schemaLag is how long a node may go on checking payloads without a schema that another node registered: far longer
// than it takes to follow the other node and to commit.
const schemaLag = 10 * time.Second

// newer reports whether the payload of a job, or of the definition that it comes from, may have been stored without a
// check against the schema of its type.
func (h *handlers) newer(spec *rules.Spec) bool {
	known, ok := (*h)[spec.Lane.Type]
	return ok && (spec.CreatedAt <= known.UpdatedAt.Add(schemaLag) || spec.Lane.Definition != "")
}

// loadHandlers reads all schemas; those that did not change are not compiled again.
func (s *Scheduler) loadHandlers(ctx context.Context, v View) error {
	stored, err := v.Handlers(ctx)
	if err != nil {
		return err
	}
	next := handlers{}
	was := s.handlers.Load()
	if was == nil {
		was = &handlers{}
	}
	for _, h := range stored {
		compiled := (*was)[h.HandlerID].schema
		if compiled == nil || !bytes.Equal((*was)[h.HandlerID].Schema, h.Schema) {
			if compiled, err = schema.Compile(h.Schema); err != nil {
				return fmt.Errorf("compile the schema of handler %s: %w", h.HandlerID, err)
			}
		}
		next[h.HandlerID] = handler{h, compiled}
	}
	s.handlers.Store(&next)
	return nil
}

// SetHandler registers the JSON Schema of a handler, and reports whether the handler is new.
func (s *Scheduler) SetHandler(
	ctx context.Context, c Caller, id string, raw json.RawMessage,
) (h lessor.Handler, created bool, err error) {
	if err := rules.CheckHandler(id, raw); err != nil {
		return h, false, err
	}
	if _, err := schema.Compile(raw); err != nil {
		return h, false, rules.WrongField("schema", "%v", err)
	}
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		if err := p.gate(ctx); err != nil {
			return err
		}
		book := *s.handlers.Load()
		was, known := book[id]
		if !known {
			if err := rules.HandlerRoom(len(book)); err != nil {
				return err
			}
		}
		if h = was.Handler; known && bytes.Equal(was.Schema, raw) {
			return nil
		}
		created = !known
		h = lessor.Handler{HandlerID: id, Schema: raw, UpdatedAt: p.now}
		var before any
		if known {
			before = was.Handler
		}
		p.audit(c, "handler.changed", "handler/"+id, before, h)
		if err := p.tx.SaveHandler(ctx, h); err != nil {
			return err
		}
		p.l.fold.ChangeSettings()
		return s.loadHandlers(ctx, p.tx)
	})
	return h, created, err
}

// Handlers lists the handlers whose schemas are in force here, the last that was set first, and the cursor of the next
// page ("" at the end). Nothing is read: all schemas together may be far larger than a page.
func (s *Scheduler) Handlers(limit int, cursor string) ([]lessor.Handler, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	after, err := namedCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	book, err := s.schemas()
	if err != nil {
		return nil, "", err
	}
	newer := func(a, b Named) int { return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(b.Name, a.Name)) }
	var list []lessor.Handler
	for _, h := range *book {
		if after == nil || newer(*after, Named{h.UpdatedAt, h.HandlerID}) < 0 {
			list = append(list, h.Handler)
		}
	}
	slices.SortFunc(list, func(a, b lessor.Handler) int {
		return newer(Named{a.UpdatedAt, a.HandlerID}, Named{b.UpdatedAt, b.HandlerID})
	})
	cursorOf := func(h lessor.Handler) string { return (&Named{h.UpdatedAt, h.HandlerID}).cursor() }
	page, next := cut(list, min(limit, fitting(list)), cursorOf)
	return page, next, nil
}
