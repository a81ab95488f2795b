package scheduler

import (
	"encoding/json"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

func TestPagesOfDefinitionsAndOfTheAuditAreBoundedInBytes(t *testing.T) {
	large := json.RawMessage(make([]byte, maxPageBytes/4))
	definitions := make([]*rules.Definition, 10)
	audit := make([]lessor.Audited, 10)
	for i := range definitions {
		definitions[i], audit[i] = &rules.Definition{ID: "d", Payload: large}, lessor.Audited{Before: large, After: large}
	}
	if n := fitting(definitions); n != 4 {
		t.Errorf("a page has %d definitions of a quarter of a page each, want 4", n)
	}
	if n := fitting(audit); n != 2 {
		t.Errorf("a page has %d entries of half a page each, want 2", n)
	}
	if n := fitting([]lessor.Audited{{Before: make(json.RawMessage, 2*maxPageBytes)}}); n != 1 {
		t.Errorf("a page has %d entries that are larger than a page, want 1", n)
	}
	if _, next := cut(definitions, min(100, fitting(definitions)), func(*rules.Definition) string { return "here" }); next != "here" {
		t.Error("a page that is cut short has no cursor")
	}
}
