package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"lessor"
)

// Tenants returns one page of tenants, the largest id first, and the cursor of the next page, "" at the end.
func (c *Client) Tenants(
	ctx context.Context, limit int, cursor string,
) (tenants []lessor.Tenant, next string, err error) {
	return kernelPage[lessor.Tenant](ctx, c, "/tenants", "tenants", page(limit, cursor))
}

// Tenant returns one tenant; one that was never seen has the defaults.
func (c *Client) Tenant(ctx context.Context, id lessor.TenantID) (t lessor.Tenant, err error) {
	_, err = c.read(ctx, kernel+tenantPath(id), nil, maxObject, &t)
	return t, err
}

// SetTenant sets a tenant's weight, cap and pause. A nil field takes its default.
func (c *Client) SetTenant(ctx context.Context, id lessor.TenantID, ask lessor.TenantAsk) (t lessor.Tenant, err error) {
	_, err = c.do(ctx, call{method: http.MethodPut, path: kernel + tenantPath(id), body: ask}, &t)
	return t, err
}

// Classes returns one page of a tenant's fairness classes, by name, and the cursor of the next page, "" at the end.
func (c *Client) Classes(
	ctx context.Context, id lessor.TenantID, limit int, cursor string,
) (classes []lessor.Class, next string, err error) {
	return kernelPage[lessor.Class](ctx, c, tenantPath(id)+"/classes", "classes", page(limit, cursor))
}

// Class returns one fairness class; one that was never seen has the defaults.
func (c *Client) Class(ctx context.Context, id lessor.TenantID, class string) (k lessor.Class, err error) {
	_, err = c.read(ctx, kernel+classPath(id, class), nil, maxObject, &k)
	return k, err
}

// SetClass sets the weight, cap and pause of a fairness class. A nil field takes its default.
func (c *Client) SetClass(
	ctx context.Context, id lessor.TenantID, class string, ask lessor.TenantAsk,
) (k lessor.Class, err error) {
	_, err = c.do(ctx, call{method: http.MethodPut, path: kernel + classPath(id, class), body: ask}, &k)
	return k, err
}

// Handlers returns one page of handlers with their schemas, the last that was set first, and the cursor of the next
// page, "" at the end.
func (c *Client) Handlers(
	ctx context.Context, limit int, cursor string,
) (handlers []lessor.Handler, next string, err error) {
	return kernelPage[lessor.Handler](ctx, c, "/handlers", "handlers", page(limit, cursor))
}

// SetHandler registers the JSON Schema that a handler's payloads must meet, and reports whether the handler is new.
func (c *Client) SetHandler(
	ctx context.Context, id string, schema json.RawMessage,
) (h lessor.Handler, created bool, err error) {
	body := struct {
		Schema json.RawMessage `json:"schema"`
	}{schema}
	status, err := c.do(ctx, call{
		method: http.MethodPut, path: kernel + "/handlers/" + url.PathEscape(id),
		body: body,
	}, &h)
	return h, status == http.StatusCreated, err
}

func tenantPath(id lessor.TenantID) string { return "/tenants/" + id.String() }

func classPath(id lessor.TenantID, class string) string {
	return tenantPath(id) + "/classes/" + url.PathEscape(class)
}
