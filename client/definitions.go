package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"lessor"
)

// PutDefinition stores a definition whole and reports whether it is new.
func (c *Client) PutDefinition(ctx context.Context, e lessor.Envelope) (d lessor.Definition, created bool, err error) {
	status, err := c.do(ctx, call{method: http.MethodPut, path: definitionPath(deref(e.JobID), ""), body: e}, &d)
	return d, status == http.StatusCreated, err
}

// Definition returns one definition.
func (c *Client) Definition(ctx context.Context, id string) (d lessor.Definition, err error) {
	_, err = c.read(ctx, definitionPath(id, ""), nil, maxObject, &d)
	return d, err
}

// Definitions returns one page of the definitions that match f, newest first, and the cursor of the next page, "" at
// the end.
func (c *Client) Definitions(
	ctx context.Context, f lessor.DefinitionFilter,
) (ds []lessor.Definition, next string, err error) {
	q := page(f.Limit, f.Cursor)
	set(q, "moduleId", f.Module)
	setTenant(q, f.Tenant)
	return kernelPage[lessor.Definition](ctx, c, "/jobs", "jobs", q)
}

// AllDefinitions returns all definitions that match f, page by page; f.Limit is the size of a page. It ends at the
// first error.
func (c *Client) AllDefinitions(ctx context.Context, f lessor.DefinitionFilter) iter.Seq2[lessor.Definition, error] {
	return eachPage(f.Cursor, func(cursor string) ([]lessor.Definition, string, error) {
		f.Cursor = cursor
		return c.Definitions(ctx, f)
	})
}

// DeleteDefinition removes a definition and cancels its jobs that wait. Its runs stay.
func (c *Client) DeleteDefinition(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: definitionPath(id, "")}, nil)
	return err
}

// Apply stores a module's definitions for one tenant, all or none, and tells what that did, or with DryRun would do.
func (c *Client) Apply(ctx context.Context, m lessor.Manifest) (applied lessor.Applied, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: kernel + "/manifests", body: m}, &applied)
	return applied, err
}

// Pause stops a definition's ticks and lets its queued jobs wait.
func (c *Client) Pause(ctx context.Context, id string) (lessor.Definition, error) {
	return c.steer(ctx, id, "/pause")
}

// Resume ends a pause. Ticks of the time between are not caught up.
func (c *Client) Resume(ctx context.Context, id string) (lessor.Definition, error) {
	return c.steer(ctx, id, "/resume")
}

// ResetCircuit closes a definition's circuit.
func (c *Client) ResetCircuit(ctx context.Context, id string) (lessor.Definition, error) {
	return c.steer(ctx, id, "/circuit/reset")
}

func (c *Client) steer(ctx context.Context, id, verb string) (d lessor.Definition, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: definitionPath(id, verb), body: struct{}{}}, &d)
	return d, err
}

// definitionPath escapes the id, which may have any characters.
func definitionPath(id, rest string) string { return kernel + "/jobs/" + url.PathEscape(id) + rest }
