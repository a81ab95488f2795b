package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"lessor"
)

// Tenants returns one page of tenants, the largest id first.
func (c *Client) Tenants(
	ctx context.Context, limit int, cursor string,
) (tenants []lessor.Tenant, next string, err error) {
	return list[lessor.Tenant](ctx, c, kernel+"/tenants", "tenants", page(limit, cursor))
}

// Tenant returns one tenant. An unknown tenant has the defaults.
func (c *Client) Tenant(ctx context.Context, id lessor.TenantID) (lessor.Tenant, error) {
	return get[lessor.Tenant](ctx, c, kernel+tenantPath(id), nil, maxObject)
}

// SetTenant changes a tenant's weight, cap and pause. Fields left out stay as they are.
func (c *Client) SetTenant(ctx context.Context, id lessor.TenantID, ask lessor.TenantAsk) (lessor.Tenant, error) {
	return send[lessor.Tenant](ctx, c, http.MethodPut, kernel+tenantPath(id), ask)
}

// Classes returns one page of a tenant's fairness classes, by name.
func (c *Client) Classes(
	ctx context.Context, id lessor.TenantID, limit int, cursor string,
) (classes []lessor.Class, next string, err error) {
	return list[lessor.Class](ctx, c, kernel+tenantPath(id)+"/classes", "classes", page(limit, cursor))
}

// Class returns one fairness class. An unknown class has the defaults.
func (c *Client) Class(ctx context.Context, id lessor.TenantID, class string) (lessor.Class, error) {
	return get[lessor.Class](ctx, c, kernel+classPath(id, class), nil, maxObject)
}

// SetClass changes the weight, cap and pause of a fairness class. Fields left out stay as they are.
func (c *Client) SetClass(
	ctx context.Context, id lessor.TenantID, class string, ask lessor.TenantAsk,
) (lessor.Class, error) {
	return send[lessor.Class](ctx, c, http.MethodPut, kernel+classPath(id, class), ask)
}

// Handlers returns one page of handlers with their schemas, the most recently set first.
func (c *Client) Handlers(
	ctx context.Context, limit int, cursor string,
) (handlers []lessor.Handler, next string, err error) {
	return list[lessor.Handler](ctx, c, kernel+"/handlers", "handlers", page(limit, cursor))
}

// SetHandler registers the JSON Schema of a handler's payloads, and reports whether the handler is new.
func (c *Client) SetHandler(
	ctx context.Context, id string, schema json.RawMessage,
) (h lessor.Handler, created bool, err error) {
	status, err := c.do(ctx, call{
		method: http.MethodPut, path: kernel + "/handlers/" + url.PathEscape(id),
		body: map[string]json.RawMessage{"schema": schema},
	}, &h)
	return h, status == http.StatusCreated, err
}

func tenantPath(id lessor.TenantID) string { return "/tenants/" + id.String() }

func classPath(id lessor.TenantID, class string) string {
	return tenantPath(id) + "/classes/" + url.PathEscape(class)
}
