package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	access "lessor/internal/token"
)

func TestEveryRouteDeclaresWhoMayUseIt(t *testing.T) {
	seen := map[string]bool{}
	for _, rt := range routes(defaultPayloadLimit) {
		name := rt.method + " " + rt.path
		if !access.Admin.Allows(rt.scope) { // no role has an unknown one
			t.Errorf("%s has no scope (%q)", name, rt.scope)
		}
		if (rt.scope == access.Public) != strings.HasPrefix(rt.path, "/health/") {
			t.Errorf("%s is public: %v; only /health/ may be, and must be", name, rt.scope == access.Public)
		}
		if strings.HasPrefix(rt.path, administration) != (rt.scope == access.Administer) {
			t.Errorf("%s has scope %s; /api/admin, and nothing else, is for admins", name, rt.scope)
		}
		if seen[name] {
			t.Errorf("%s stands in the table twice", name)
		}
		seen[name] = true
		if rt.summary == "" || rt.handle.run == nil || len(rt.answers) == 0 {
			t.Errorf("%s lacks a summary, a handler or an answer", name)
		}
		if rt.handle.in != nil && rt.handle.limit <= 0 {
			t.Errorf("%s takes a body without a limit", name)
		}
		for _, q := range append(slices.Clone(rt.query), pathNames(rt.path)...) {
			if parameters[q] == nil {
				t.Errorf("%s has a parameter %s that is not described", name, q)
			}
		}
		for _, code := range rt.refusals {
			if statuses[code] == 0 {
				t.Errorf("%s refuses with %s, which has no status", name, code)
			}
		}
	}
}

func pathNames(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// The routes of the specification, section 4.
func TestTableHasTheRoutesOfTheSpecification(t *testing.T) {
	want := strings.Fields(`
		POST:/jobs POST:/jobs/batch GET:/jobs GET:/jobs/{job_id} GET:/jobs/{job_id}/events GET:/jobs/{job_id}/why
		POST:/jobs/{job_id}/cancel POST:/jobs/{job_id}/retry
		POST:/jobs/{job_id}/answer POST:/jobs/{job_id}/messages POST:/leases/request POST:/leases/{lease_id}/heartbeat
		GET:/jobs/{job_id}/journal POST:/leases/{lease_id}/journal
		GET:/jobs/{job_id}/output POST:/leases/{lease_id}/output
		POST:/leases/turn POST:/leases/heartbeat POST:/leases/cancelled
			POST:/leases/complete POST:/leases/{lease_id}/complete POST:/leases/{lease_id}/release
		POST:/leases/{lease_id}/revoke GET:/leases GET:/capacity PUT:/capacity GET:/status PUT:/drain
		GET:/workers GET:/events`)
	ofSchedules := strings.Fields(`
		PUT:/jobs/{jobId} GET:/jobs GET:/jobs/{jobId} DELETE:/jobs/{jobId} POST:/manifests POST:/jobs/{jobId}/pause
		POST:/jobs/{jobId}/resume
		POST:/jobs/{jobId}/circuit/reset POST:/jobs/{jobId}/trigger POST:/jobs/{jobId}/backfill GET:/jobs/{jobId}/next
		GET:/jobs/{jobId}/ticks
		GET:/circuits GET:/locks PUT:/handlers/{handlerId} GET:/handlers GET:/tenants GET:/tenants/{tenantId}
		PUT:/tenants/{tenantId}
		GET:/tenants/{tenantId}/classes GET:/tenants/{tenantId}/classes/{class} PUT:/tenants/{tenantId}/classes/{class}
		GET:/runs GET:/runs/{runId} GET:/errors/{ref} GET:/alerts POST:/alerts/{alertId}/acknowledge GET:/audit`)
	for i := range want {
		want[i] = strings.Replace(want[i], ":", ":"+scheduling, 1)
	}
	for _, r := range ofSchedules {
		want = append(want, strings.Replace(r, ":", ":"+schedules, 1))
	}
	want = append(want, strings.Fields(`GET:/health/live GET:/health/ready GET:/metrics GET:/openapi.json
		POST:/api/admin/tokens
		GET:/api/admin/tokens DELETE:/api/admin/tokens/{id} GET:/api/admin/backup GET:/api/admin/doctor
		GET:/api/admin/log-level PUT:/api/admin/log-level GET:/api/admin/pprof/{profile}
		GET:/api/admin/recovery/jobs/heartbeats GET:/api/admin/recovery/jobs/stale GET:/api/admin/jobs/{jobId}/health
		GET:/api/admin/recovery/jobs/status GET:/api/admin/recovery/jobs/sentinels GET:/api/admin/recovery/jobs/metrics
		GET:/api/admin/recovery/jobs/failed POST:/api/admin/recovery/jobs/resume POST:/api/admin/recovery/scan
		POST:/api/admin/jobs/{jobId}/mark-dead GET:/api/admin/recovery/cleanups`)...)
	var got []string
	for _, rt := range routes(defaultPayloadLimit) {
		got = append(got, rt.method+":"+rt.path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A pattern that does not come from the table would be served without a scope. ServeMux does not tell its patterns, so
// this reads the source: Handle and HandleFunc are called in newMux, and nowhere else in the package.
func TestOnlyTheTableMakesPatterns(t *testing.T) {
	found := map[string]int{}
	for name, file := range sources(t) {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Handle" || sel.Sel.Name == "HandleFunc") {
					found[name+" "+fn.Name.Name]++
				}
				return true
			})
		}
	}
	if want := map[string]int{"mux.go newMux": 2}; !maps.Equal(found, want) {
		t.Errorf("patterns are registered in %v, want %v", found, want)
	}
	table := routes(defaultPayloadLimit)
	mux := newMux(table)
	for _, rt := range table {
		if _, pattern := mux.Handler(request(rt.method, pathOf(rt), "")); pattern != rt.path {
			t.Errorf("%s is served by the pattern %q", rt.path, pattern)
		}
	}
}

// A handler longer than 25 lines has swallowed a rule. Methods of call are handlers and what they share.
func TestHandlersAreShort(t *testing.T) {
	fset := token.NewFileSet()
	for name := range sources(t) {
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Body == nil {
				continue
			}
			// and its first and last
			if lines := fset.Position(fn.Body.End()).Line - fset.Position(fn.Pos()).Line + 1; lines > 25+2 {
				t.Errorf("%s: %s has %d lines", name, fn.Name.Name, lines)
			}
		}
	}
}

func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return files
}
