package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lessor"
)

// The bounds of a list's page.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxQuery     = 1000 // characters of one query value
)

// readQuery reads the query, or refuses a parameter the route does not have. A parameter that is empty counts as absent.
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
		case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0) || len(values[0]) > maxQuery:
			return badValue(shown, "must be UTF-8 text without NUL characters, at most 1000 bytes")
		}
	}
	c.query = q
	return nil
}

// limit is the length of a list's page.
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

// jobFilter is the query of a list of jobs.
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
	if named := c.query.Get("tenant_id"); named != "" {
		u, err := lessor.ParseUUID(named)
		if err != nil {
			return f, badValue("tenant_id", err.Error())
		}
		f.Tenant = &lessor.TenantID{UUID: u}
		return f, c.ownTenant(&named)
	}
	return f, nil
}

// cursorOf is a cursor on the wire: null at the end.
func cursorOf(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
