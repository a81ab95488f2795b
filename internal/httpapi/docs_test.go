package httpapi

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"lessor/internal/token"
)

// docs/api.md ends with a table of all routes: what it says of each, and of the roles that may use it, is compared with
// the table in the code.
func TestDocsNameEveryRoute(t *testing.T) {
	raw, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(raw), -1) {
		documented[m[1]] = m[2]
	}
	for _, rt := range routes(defaultPayloadLimit) {
		name := rt.method + " " + rt.path
		if got, want := documented[name], whoMay(rt.scope); got != want {
			t.Errorf("docs/api.md says of %s that it is for %q, the table %q", name, got, want)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("there is no route %s, but docs/api.md says so", name)
	}
	for code, status := range statuses {
		if !strings.Contains(string(raw), "`"+string(code)+"`") {
			t.Errorf("docs/api.md does not name the code %s (%d)", code, status)
		}
	}
}

// whoMay names the roles that have a scope; a star marks what refuses tokens bound to a tenant.
func whoMay(s token.Scope) string {
	if s == token.Public {
		return "everybody"
	}
	var who []string
	for _, r := range token.Roles() {
		if r.Allows(s) && r != token.Admin {
			who = append(who, string(r))
		}
	}
	if len(who) == 0 {
		who = []string{"admin"}
	}
	if s.RefusesTenants() {
		return strings.Join(who, ", ") + " *"
	}
	return strings.Join(who, ", ")
}
