package httpapi

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"lessor"
	"lessor/internal/token"
)

// openAPI describes the routes of a table from the types that requests and answers use. The contract tests check every
// answer against it.
func openAPI(table []route, version string) []byte {
	if version == "" {
		version = "dev"
	}
	s := schemas{named: object{}}
	paths := map[string]object{}
	for i := range table {
		rt := &table[i]
		if paths[rt.path] == nil {
			paths[rt.path] = object{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = operation(rt, s)
	}
	b, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Lessor", "version": version,
			"description": "Jobs under leases that heartbeats keep alive. Errors are RFC 9457 problems with a code.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths": paths,
		"components": object{
			"schemas":         s.named,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{object{"token": []any{}}, object{}},
	}, json.Deterministic(true))
	if err != nil {
		panic(err) // maps of strings and numbers can always be encoded
	}
	return b
}

func operation(rt *route, s schemas) object {
	o := object{
		"operationId": operationID(rt), "summary": rt.summary, "tags": []any{tagOf(rt.path)},
		"x-scope": string(rt.scope), "responses": responses(rt, s),
	}
	if ps := parametersOf(rt); len(ps) > 0 {
		o["parameters"] = ps
	}
	if in := rt.handle.in; in != nil {
		o["requestBody"] = object{
			"required": !isOptional(in),
			"content":  object{"application/json": object{"schema": s.of(in, true)}},
		}
	}
	switch {
	case rt.scope == token.Public:
		o["security"] = []any{}
	case rt.scope.NeedsToken():
		o["security"] = []any{object{"token": []any{}}}
	}
	return o
}

// operationID is the method and the path's words: getJobsJobIdEvents.
func operationID(rt *route) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(rt.method))
	path := strings.TrimPrefix(strings.TrimPrefix(rt.path, scheduling), "/api")
	for _, word := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}_.", r) }) {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}

func tagOf(path string) string {
	if rest, ok := strings.CutPrefix(path, scheduling+"/"); ok {
		tag, _, _ := strings.Cut(rest, "/")
		return tag
	}
	if strings.HasPrefix(path, schedules) {
		return "kernel"
	}
	if strings.HasPrefix(path, administration) {
		return "admin"
	}
	return "server"
}

func parametersOf(rt *route) []any {
	var ps []any
	for segment := range strings.SplitSeq(rt.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			ps = append(ps, object{"name": name, "in": "path", "required": true, "schema": parameters[name]})
		}
	}
	for _, name := range rt.query {
		ps = append(ps, object{"name": name, "in": "query", "schema": queryParameter(name)})
	}
	if rt.versioned {
		names := []string{"If-Match", "If-None-Match"}
		if rt.method == http.MethodGet {
			names = names[1:]
		}
		for _, name := range names {
			ps = append(ps, object{"name": name, "in": "header", "schema": parameters[name]})
		}
	}
	return ps
}

func responses(rt *route, s schemas) object {
	rs, bodies := object{}, map[int][]any{}
	for _, a := range rt.answers {
		status := strconv.Itoa(a.status)
		switch body := a.body.(type) {
		case nil:
			rs[status] = object{"description": http.StatusText(a.status)}
		case string:
			rs[status] = object{
				"description": http.StatusText(a.status),
				"content":     object{body: object{"schema": object{}}},
			}
		default:
			bodies[a.status] = append(bodies[a.status], body)
			schema := s.anyOf(bodies[a.status])
			if len(bodies[a.status]) == 1 {
				schema = s.of(reflect.TypeOf(body), false)
			}
			o := object{
				"description": http.StatusText(a.status),
				"content":     object{"application/json": object{"schema": schema}},
			}
			if rt.versioned {
				o["headers"] = object{"ETag": object{"schema": object{"type": "string"}}}
			}
			rs[status] = o
		}
	}
	if rt.versioned && rt.method == http.MethodGet {
		rs[strconv.Itoa(http.StatusNotModified)] = object{"description": http.StatusText(http.StatusNotModified)}
	}
	for status, cs := range refusalsOf(rt) {
		problem := object{"application/problem+json": object{"schema": s.of(reflect.TypeFor[problem](), false)}}
		rs[strconv.Itoa(status)] = object{"description": strings.Join(cs, ", "), "content": problem}
	}
	return rs
}

// refusalsOf returns the codes of a route's refusals, by status: its own, those of every route, and those of a body, a
// query or a scope.
func refusalsOf(rt *route) map[int][]string {
	all := map[lessor.Code]bool{
		lessor.CodeInvalidRequest: true, lessor.CodeForbidden: true, lessor.CodeInternal: true,
		lessor.CodeUnavailable: true,
	}
	for _, c := range rt.refusals {
		all[c] = true
	}
	if rt.handle.in != nil {
		all[lessor.CodePayloadTooLarge], all[lessor.CodeInvalidValue] = true, true
	}
	if len(rt.query) > 0 {
		all[lessor.CodeInvalidValue] = true
	}
	if rt.versioned && rt.method != http.MethodGet {
		all[lessor.CodePreconditionFailed] = true
	}
	if rt.scope != token.Public {
		all[lessor.CodeUnauthenticated] = true
		all[lessor.CodeRateLimited] = true // too many wrong tokens
	}
	if strings.HasPrefix(rt.path, "/api/") {
		all[lessor.CodeRateLimited] = true // too many calls wait for the store
	}
	byStatus := map[int][]string{}
	for _, c := range slices.Sorted(maps.Keys(all)) {
		byStatus[statuses[c]] = append(byStatus[statuses[c]], string(c))
	}
	return byStatus
}
