package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"lessor"
)

// PutDefinition stores a definition, replacing an existing one, and reports whether it is new.
func (c *Client) PutDefinition(ctx context.Context, e lessor.Envelope) (d lessor.Definition, created bool, err error) {
	var jobID string
	if e.JobID != nil {
		jobID = *e.JobID
	}
	status, err := c.do(ctx, call{method: http.MethodPut, path: definitionPath(jobID, ""), body: e}, &d)
	return d, status == http.StatusCreated, err
}

// Definition returns one definition.
func (c *Client) Definition(ctx context.Context, id string) (lessor.Definition, error) {
	return get[lessor.Definition](ctx, c, definitionPath(id, ""), nil, maxObject)
}

// Definitions returns one page of the definitions that match f, newest first.
func (c *Client) Definitions(
	ctx context.Context, f lessor.DefinitionFilter,
) (ds []lessor.Definition, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "moduleId", f.Module)
	setTenant(q, "tenantId", f.Tenant)
	return list[lessor.Definition](ctx, c, kernel+"/jobs", "jobs", q)
}

// AllDefinitions returns all definitions that match f; f.Limit is the size of a page.
func (c *Client) AllDefinitions(ctx context.Context, f lessor.DefinitionFilter) iter.Seq2[lessor.Definition, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Definition, string, error) {
		f.Cursor = cursor
		return c.Definitions(ctx, f)
	})
}

// DeleteDefinition removes a definition and cancels its waiting jobs. Its runs stay.
func (c *Client) DeleteDefinition(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: definitionPath(id, "")}, nil)
	return err
}

// Apply stores the definitions of a module for one tenant, all or none. It returns what changed, or would change with
// DryRun.
func (c *Client) Apply(ctx context.Context, m lessor.Manifest) (lessor.Applied, error) {
	return send[lessor.Applied](ctx, c, http.MethodPost, kernel+"/manifests", m)
}

// Pause stops the ticks of a definition and holds back its queued jobs.
func (c *Client) Pause(ctx context.Context, id string) (lessor.Definition, error) {
	return send[lessor.Definition](ctx, c, http.MethodPost, definitionPath(id, "/pause"), nil)
}

// Resume ends a pause. Ticks that fell into the pause are not caught up.
func (c *Client) Resume(ctx context.Context, id string) (lessor.Definition, error) {
	return send[lessor.Definition](ctx, c, http.MethodPost, definitionPath(id, "/resume"), nil)
}

// ResetCircuit closes a definition's circuit.
func (c *Client) ResetCircuit(ctx context.Context, id string) (lessor.Definition, error) {
	return send[lessor.Definition](ctx, c, http.MethodPost, definitionPath(id, "/circuit/reset"), nil)
}

// Trigger creates a job of a definition now, even if it is paused, and returns its id. A payload that is not nil
// replaces the definition's.
func (c *Client) Trigger(ctx context.Context, id string, payload json.RawMessage) (lessor.JobID, error) {
	body := map[string]json.RawMessage{}
	if payload != nil {
		body["payload"] = payload
	}
	answer, err := send[struct {
		RunID lessor.JobID `json:"runId"`
	}](ctx, c, http.MethodPost, definitionPath(id, "/trigger"), body)
	return answer.RunID, err
}

// Backfill creates the jobs of past ticks from..to, at most 1000, and returns how many it created. A tick that already
// has a job gets no second one, so Backfill may be repeated.
func (c *Client) Backfill(ctx context.Context, id string, from, to lessor.Instant) (created int, err error) {
	answer, err := send[struct {
		Created int `json:"created"`
	}](ctx, c, http.MethodPost, definitionPath(id, "/backfill"), map[string]lessor.Instant{"from": from, "to": to})
	return answer.Created, err
}

// NextTicks returns the next ticks of a definition, 1 to 100, even if it is paused. Zero means five.
func (c *Client) NextTicks(ctx context.Context, id string, count int) ([]lessor.Instant, error) {
	q := url.Values{}
	if count != 0 {
		q.Set("count", strconv.Itoa(count))
	}
	answer, err := get[struct {
		Next []lessor.Instant `json:"next"`
	}](ctx, c, definitionPath(id, "/next"), q, maxObject)
	return answer.Next, err
}

// Ticks returns one page of a definition's ticks and their outcomes, oldest first.
func (c *Client) Ticks(
	ctx context.Context, id string, f lessor.TickFilter,
) (ticks []lessor.Tick, next string, err error) {
	q := page(f.Limit, f.Cursor)
	for name, at := range map[string]lessor.Instant{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			q.Set(name, at.String())
		}
	}
	return list[lessor.Tick](ctx, c, definitionPath(id, "/ticks"), "ticks", q)
}

// AllTicks returns all ticks that match f; f.Limit is the size of a page.
func (c *Client) AllTicks(ctx context.Context, id string, f lessor.TickFilter) iter.Seq2[lessor.Tick, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Tick, string, error) {
		f.Cursor = cursor
		return c.Ticks(ctx, id, f)
	})
}

// definitionPath escapes the id, which may contain any character.
func definitionPath(id, rest string) string { return kernel + "/jobs/" + url.PathEscape(id) + rest }
