package lessor

import "encoding/json"

// TenantAsk is the body of a change to a tenant or to one of its classes. Fields left out stay as they are.
type TenantAsk struct {
	Name           Change[string] `json:"name,omitzero"`
	Weight         Change[int64]  `json:"weight,omitzero"`
	MaxConcurrency Change[int64]  `json:"maxConcurrency,omitzero"`
	Paused         Change[bool]   `json:"paused,omitzero"`

	// The rest of a Tenant or a Class, so that one can be read, edited and sent back. TenantID and Class must be its
	// own. With MaxConcurrencyDefault, a MaxConcurrency that equals the default is not set. The server ignores the
	// others.
	TenantID              *string `json:"tenantId,omitempty"`
	Class                 *string `json:"class,omitempty"`
	MaxConcurrencyDefault *bool   `json:"maxConcurrencyDefault,omitempty"`
	Leases                *int64  `json:"leases,omitempty"`
	Units                 *int64  `json:"units,omitempty"`
	Queued                *int64  `json:"queued,omitempty"`
}

// Tenant is an owner of jobs with its settings and its current use. MaxConcurrency is null without a cap;
// MaxConcurrencyDefault says that it was not set and follows the server's default.
type Tenant struct {
	TenantID              TenantID `json:"tenantId"`
	Name                  *string  `json:"name"` // for people; null = none
	Weight                int      `json:"weight"`
	MaxConcurrency        *int     `json:"maxConcurrency"`
	MaxConcurrencyDefault bool     `json:"maxConcurrencyDefault"`
	Paused                bool     `json:"paused"`
	Leases                int      `json:"leases"`
	Units                 int      `json:"units"`
	Queued                int      `json:"queued"`
	ETag                  string   `json:"-"` // set by the client: the version of the settings, for client.WithIfMatch
}

// Class is a fairness class of a tenant.
type Class struct {
	TenantID       TenantID `json:"tenantId"`
	Class          string   `json:"class"`
	Name           *string  `json:"name"`
	Weight         int      `json:"weight"`
	MaxConcurrency *int     `json:"maxConcurrency"`
	Paused         bool     `json:"paused"`
	Leases         int      `json:"leases"`
	Queued         int      `json:"queued"`
	ETag           string   `json:"-"` // as Tenant has it
}

// Handler is a handler id and the JSON Schema that its payloads must meet.
type Handler struct {
	HandlerID string          `json:"handlerId"`
	Schema    json.RawMessage `json:"schema"`
	UpdatedAt Instant         `json:"updatedAt"`
}
