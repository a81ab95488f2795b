package httpapi

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"lessor"
)

// The bounds of a list's page.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxQuery     = 1000 // characters of one query value
)

// readQuery reads the query, or refuses a parameter that the route does not have. An empty one is a mistake:
// it would read as "all".
func (c *call) readQuery() error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badField("query", "is not well-formed")
	}
	for name, values := range q {
		shown := shorten(strings.ToValidUTF8(name, "�"), maxFieldName)
		switch {
		case !slices.Contains(c.route.query, name):
			return badField(shown, "is not a query parameter of this route")
		case len(values) > 1:
			return badField(shown, "is there twice")
		case values[0] == "":
			return badValue(shown, "must not be empty; leave it out instead")
		case !isText(values[0]) || len(values[0]) > maxQuery:
			return badValue(shown, "must be UTF-8 text without NUL characters, at most 1000 bytes")
		}
	}
	c.query = q
	return nil
}

// limit returns the size of a list's page.
func (c *call) limit() (int, error) {
	s := c.query.Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLimit {
		return 0, badValue("limit", "must be 1 to 1000")
	}
	return n, nil
}

// number returns a whole number of the query, nil if it is not there.
func (c *call) number(parameter string) (*int64, error) {
	s := c.query.Get(parameter)
	if s == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, badValue(parameter, "must be a whole number")
	}
	return &n, nil
}

// jobFilter returns the filter of a list of jobs.
func (c *call) jobFilter() (lessor.JobFilter, error) {
	limit, err := c.limit()
	if err != nil {
		return lessor.JobFilter{}, err
	}
	f := lessor.JobFilter{
		State: lessor.State(c.query.Get("state")), Type: c.query.Get("type"), Tag: c.query.Get("tag"),
		Limit: limit, Cursor: c.query.Get("cursor"),
	}
	if f.State != "" && !slices.Contains(lessor.States(), f.State) {
		return f, badValue("state", "must be one of a job's states")
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
		return nil, badValue(parameter, err.Error())
	}
	return &lessor.TenantID{UUID: u}, c.ownTenant(&named)
}

// instantNamed returns the time that a query names, 0 for none.
func (c *call) instantNamed(parameter string) (lessor.Instant, error) {
	s := c.query.Get(parameter)
	if s == "" {
		return 0, nil
	}
	return instant(parameter, s)
}

// instant reads a time.
func instant(field, s string) (lessor.Instant, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, badValue(field, "must be a time like 2026-02-06T20:10:00Z (RFC 3339)")
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
