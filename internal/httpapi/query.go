package httpapi

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"lessor"
)

// The bounds of a list's page.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxQuery     = 1000 // characters of one query value
)

// readQuery reads the query, or refuses it and names every parameter that is wrong. An empty one is a mistake: it would
// read as "all".
func (c *call) readQuery() error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badField("query", "is not well-formed")
	}
	var in inspector
	for _, name := range slices.Sorted(maps.Keys(q)) {
		fault, note := parameterFault(c.route, name, q[name]), in.wrong
		if fault == "" {
			continue
		}
		if !slices.Contains(c.route.query, name) || len(q[name]) > 1 {
			note = in.malformed
		}
		q.Del(name)
		if note(name, fault) != nil {
			break
		}
	}
	if c.query = q; len(in.faults) > 0 {
		return joined(in.refusal(), c.probe())
	}
	return nil
}

// parameterFault returns what is wrong with a query parameter of a route.
func parameterFault(rt *route, name string, values []string) string {
	switch {
	case !slices.Contains(rt.query, name):
		return "is not a query parameter of this route"
	case len(values) > 1:
		return "is there twice"
	case values[0] == "":
		return "must not be empty; leave it out instead"
	case !isText(values[0]) || len(values[0]) > maxQuery:
		return "must be UTF-8 text without NUL characters, at most 1000 bytes"
	}
	described := queryParameter(name)
	if described["type"] != "integer" {
		return described.fault(values[0])
	}
	n, fault := wholeOf(jsontext.Value(values[0]))
	return cmp.Or(fault, described.fault(n))
}

// probe runs the handler on what is right of a refused query, for what it refuses itself: only a list knows its
// cursors.
func (c *call) probe() error {
	if !c.query.Has("cursor") {
		return nil
	}
	answer := c.w
	defer func() { c.w = answer }()
	c.w = &writer{ResponseWriter: discarded{}, call: c}
	return c.route.handle.run(c)
}

// discarded discards an answer.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) WriteHeader(int)             {}
func (discarded) Write(b []byte) (int, error) { return len(b), nil }

// limit returns the size of a list's page.
func (c *call) limit() int {
	if n := c.number("limit"); n != nil {
		return int(*n)
	}
	return defaultLimit
}

// number returns a whole number of the query, nil if it is not there.
func (c *call) number(parameter string) *int64 {
	s := c.query.Get(parameter)
	if s == "" {
		return nil
	}
	n, _ := wholeOf(jsontext.Value(s)) // readQuery has read it
	return &n
}

// jobFilter returns the filter of a list of jobs.
func (c *call) jobFilter() (f lessor.JobFilter, err error) {
	f = lessor.JobFilter{
		State: lessor.State(c.query.Get("state")), Type: c.query.Get("type"), Tag: c.query.Get("tag"),
		Limit: c.limit(), Cursor: c.query.Get("cursor"),
	}
	f.Tenant, err = c.tenantNamed("tenant_id")
	return f, err
}

// tenantNamed returns the tenant that a query names, nil for none.
func (c *call) tenantNamed(parameter string) (*lessor.TenantID, error) {
	named := c.query.Get(parameter)
	if named == "" {
		return nil, nil
	}
	u, err := lessor.ParseUUID(named)
	if err != nil {
		return nil, err
	}
	return &lessor.TenantID{UUID: u}, c.ownTenant(&named)
}

// instantNamed returns the time that a query names, 0 for none.
func (c *call) instantNamed(parameter string) lessor.Instant {
	i, _ := instant(parameter, c.query.Get(parameter)) // readQuery has read it
	return i
}

// instant reads a time.
func instant(field, s string) (lessor.Instant, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, badValue(field, object{"format": "date-time"}.fault(s))
	}
	return lessor.At(t), nil
}

// cursorOf returns a cursor on the wire: null at the end.
func cursorOf(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// pageOf returns one page of a list in memory, ordered by key. The cursor is the key of the last entry shown, so that
// new or removed entries do not shift the pages.
func pageOf[T any](all []T, key func(T) string, limit int, cursor string) (page []T, next *string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, nil, badValue("cursor", "is not one that was given out")
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if cursor != "" {
		all = slices.DeleteFunc(all, func(v T) bool { return key(v) <= string(after) })
	}
	if len(all) <= limit {
		return all, nil, nil
	}
	next = cursorOf(base64.RawURLEncoding.EncodeToString([]byte(key(all[limit-1]))))
	return all[:limit], next, nil
}
