package token

import (
	"slices"
	"strings"
)

// Role says what the holder of a token is for.
type Role string

// The roles. Operator has what viewer, submitter and worker have together, and more; admin has everything.
const (
	Viewer    Role = "viewer"
	Submitter Role = "submitter"
	Worker    Role = "worker"
	Operator  Role = "operator"
	Admin     Role = "admin"
)

// Roles lists every role, the least first.
func Roles() []Role { return []Role{Viewer, Submitter, Worker, Operator, Admin} }

// parseRole reads the wire name of a role.
func parseRole(s string) (Role, bool) {
	return Role(s), slices.Contains(Roles(), Role(s))
}

// Scope is the right that a route needs. The zero value is no scope: a route without one refuses every caller.
type Scope string

// The scopes.
const (
	Public   Scope = "public"   // without authentication
	Describe Scope = "describe" // the description of the API
	Observe  Scope = "observe"  // metrics: figures of the whole cluster
	// status, workers, the stream of records; definitions, runs and all that belongs to them
	Read        Scope = "read"
	ReadJob     Scope = "read_job"     // one job by its id
	ReadJobs    Scope = "read_jobs"    // lists of jobs, their records, why they wait
	Submit      Scope = "submit"       // submit, cancel, retry
	ReadLeases  Scope = "read_leases"  // the list of leases
	Lease       Scope = "lease"        // request, heartbeat, complete, release
	Revoke      Scope = "revoke"       // end the lease of another worker
	ReadFigures Scope = "read_figures" // capacity
	SetCapacity Scope = "set_capacity"
	Drain       Scope = "drain"
	Schedule    Scope = "schedule" // change definitions and circuits
	// SetTenant changes weight, cap and pause of a tenant or class: its share, which no tenant sets for itself.
	SetTenant Scope = "set_tenant"
	// ReadHandlers is a worker's too, so that it can check its own payloads; SetHandler is not. SPEC 7 names capacity
	// and handlers in one breath for workers, and capacity is theirs to read only: a new schema can fail every job of
	// its type.
	ReadHandlers Scope = "read_handlers"
	SetHandler   Scope = "set_handler"
	ReadAudit    Scope = "read_audit"
	Administer   Scope = "administer"
)

// grant says which roles have a scope.
type grant struct {
	roles []Role
	// needsToken: also on a loopback address, where tokenless callers are operators otherwise.
	needsToken bool
	// noTenant: refused to tokens that are bound to a tenant, because it shows or changes what all tenants share.
	noTenant bool
}

// scopes is the table of all rights.
var scopes = map[Scope]grant{
	Public:       {},
	Describe:     {roles: Roles()},
	Observe:      {roles: []Role{Viewer, Operator, Admin}, noTenant: true},
	Read:         {roles: []Role{Viewer, Operator, Admin}},
	ReadJob:      {roles: []Role{Viewer, Submitter, Worker, Operator, Admin}},
	ReadJobs:     {roles: []Role{Viewer, Submitter, Operator, Admin}},
	Submit:       {roles: []Role{Submitter, Operator, Admin}},
	ReadLeases:   {roles: []Role{Viewer, Worker, Operator, Admin}},
	Lease:        {roles: []Role{Worker, Operator, Admin}},
	Revoke:       {roles: []Role{Operator, Admin}, needsToken: true},
	ReadFigures:  {roles: []Role{Viewer, Worker, Operator, Admin}, noTenant: true},
	SetCapacity:  {roles: []Role{Operator, Admin}, needsToken: true, noTenant: true},
	Drain:        {roles: []Role{Operator, Admin}, needsToken: true, noTenant: true},
	Schedule:     {roles: []Role{Operator, Admin}},
	SetTenant:    {roles: []Role{Operator, Admin}, noTenant: true},
	ReadHandlers: {roles: []Role{Viewer, Worker, Operator, Admin}, noTenant: true},
	SetHandler:   {roles: []Role{Operator, Admin}, noTenant: true},
	ReadAudit:    {roles: []Role{Admin}, needsToken: true, noTenant: true},
	Administer:   {roles: []Role{Admin}, needsToken: true, noTenant: true},
}

// NeedsToken reports whether tokenless callers are refused on every address.
func (s Scope) NeedsToken() bool { return scopes[s].needsToken }

// RefusesTenants reports whether tokens bound to a tenant are refused.
func (s Scope) RefusesTenants() bool { return scopes[s].noTenant }

// Holders lists the roles that have the scope, for people: "worker, operator or admin".
func (s Scope) Holders() string {
	var names []string
	for _, r := range scopes[s].roles {
		names = append(names, string(r))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Allows reports whether the role has the scope. Every role has Public; none has an unknown scope.
func (r Role) Allows(s Scope) bool {
	return s == Public || slices.Contains(scopes[s].roles, r)
}
