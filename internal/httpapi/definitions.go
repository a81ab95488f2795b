package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"lessor"
)

type definitionList struct {
	Jobs       []lessor.Definition `json:"jobs"`
	NextCursor *string             `json:"nextCursor"`
}

// definitionID returns the id in the path. An id with invalid text names no definition; not every store could look it
// up.
func definitionID(c *call) (string, error) {
	id := c.r.PathValue("jobId")
	if !isText(id) {
		return "", lessor.ErrDefinitionNotFound
	}
	return id, nil
}

// isText reports whether every store can keep s as a name.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (c *call) checkDefinition(e *lessor.Envelope) error {
	return c.api.scheduler.CheckDefinition(c.caller, c.r.PathValue("jobId"), *e)
}

func (c *call) putDefinition(e *lessor.Envelope) error {
	d, created, err := c.api.scheduler.PutDefinition(c.r.Context(), c.caller, c.r.PathValue("jobId"), *e)
	if err != nil {
		return err
	}
	return c.answerVersion(stored(created), d)
}

// stored returns the status of a PUT.
func stored(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (c *call) definitions() error {
	tenant, err := c.tenantNamed("tenantId")
	if err != nil {
		return err
	}
	ds, next, err := c.api.scheduler.Definitions(c.r.Context(), c.caller, lessor.DefinitionFilter{
		Tenant: tenant, Module: c.query.Get("moduleId"), Limit: c.limit(), Cursor: c.query.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, definitionList{ds, cursorOf(next)})
}

func (c *call) definition(id string) error {
	return c.replyVersion(c.api.scheduler.Definition(c.r.Context(), c.caller, id))
}

func (c *call) deleteDefinition(id string) error {
	if err := c.api.scheduler.DeleteDefinition(c.r.Context(), c.caller, id); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) checkManifest(m *lessor.Manifest) error {
	return c.api.scheduler.CheckManifest(c.caller, *m)
}

func (c *call) apply(m *lessor.Manifest) error {
	return c.reply(c.api.scheduler.Apply(c.r.Context(), c.caller, *m))
}

func (c *call) pause(id string, _ *empty) error { return c.setPaused(id, true) }

func (c *call) resume(id string, _ *empty) error { return c.setPaused(id, false) }

func (c *call) setPaused(id string, paused bool) error {
	return c.replyVersion(c.api.scheduler.SetPaused(c.r.Context(), c.caller, id, paused))
}

func (c *call) resetCircuit(id string, _ *empty) error {
	return c.replyVersion(c.api.scheduler.ResetCircuit(c.r.Context(), c.caller, id))
}

type handlerBody struct {
	Schema json.RawMessage `json:"schema"`
}

type handlerList struct {
	Handlers   []lessor.Handler `json:"handlers"`
	NextCursor *string          `json:"nextCursor"`
}

func (c *call) setHandler(b *handlerBody) error {
	h, created, err := c.api.scheduler.SetHandler(c.r.Context(), c.caller, c.r.PathValue("handlerId"), b.Schema)
	if err != nil {
		return err
	}
	return c.answer(stored(created), h)
}

func (c *call) handlers() error {
	page, next, err := c.api.scheduler.Handlers(c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, handlerList{page, cursorOf(next)})
}
