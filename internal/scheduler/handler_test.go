package scheduler

import (
	"testing"

	"lessor"
	"lessor/internal/rules"
)

// A node may store a job shortly after another node registered a schema, and not have heard of it.
func TestJobFromAroundTheTimeOfItsSchemaIsCheckedAtTheGrant(t *testing.T) {
	book := handlers{"mail": {Handler: lessor.Handler{HandlerID: "mail", UpdatedAt: 1_000_000}}}
	lag := lessor.Instant(schemaLag.Milliseconds())
	for _, tt := range []struct {
		name string
		spec rules.Spec
		want bool
	}{
		{"before the schema", rules.Spec{Lane: rules.Lane{Type: "mail"}, CreatedAt: 999_999}, true},
		{"the last that may not know it", rules.Spec{Lane: rules.Lane{Type: "mail"}, CreatedAt: 1_000_000 + lag}, true},
		{"the first that must know it", rules.Spec{Lane: rules.Lane{Type: "mail"}, CreatedAt: 1_000_001 + lag}, false},
		{"of a definition", rules.Spec{Lane: rules.Lane{Type: "mail", Definition: "d"}, CreatedAt: 1_000_001 + lag}, true},
		{"of another type", rules.Spec{Lane: rules.Lane{Type: "sms"}, CreatedAt: 1}, false},
	} {
		if got := book.newer(&tt.spec); got != tt.want {
			t.Errorf("%s: is checked again %v, want %v", tt.name, got, tt.want)
		}
	}
}
