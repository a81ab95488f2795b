package rules

import (
	"strings"
	"testing"

	"lessor"
)

func TestPageSizeIsOneToAThousand(t *testing.T) {
	for limit, ok := range map[int]bool{-1: false, 0: false, 1: true, 1000: true, 1001: false} {
		if err := CheckLimit(limit); (err == nil) != ok {
			t.Errorf("a page of %d: error %v, want accepted %v", limit, err, ok)
		}
		if err := CheckList(lessor.JobFilter{Limit: limit}); (err == nil) != ok {
			t.Errorf("a list with pages of %d: error %v, want accepted %v", limit, err, ok)
		}
	}
	wrong(t, CheckLimit(1001), lessor.FieldError{Field: "limit", Message: "must be 1 to 1000, not 1001"})
}

func TestListRefusesFiltersThatNeverMatch(t *testing.T) {
	states := "must be queued, leased, running, waiting, completed, failed, expired or cancelled, not "
	for _, c := range []struct {
		name           string
		filter         lessor.JobFilter
		field, message string // "" = accepted
	}{
		{"a state", lessor.JobFilter{State: lessor.Cancelled}, "", ""},
		{"no state", lessor.JobFilter{State: "done"}, "state", states + `"done"`},
		{"a state in capitals", lessor.JobFilter{State: "Queued"}, "state", states + `"Queued"`},
		{"the longest type", lessor.JobFilter{Type: strings.Repeat("é", 120)}, "", ""},
		{
			"a longer type",
			lessor.JobFilter{Type: strings.Repeat("é", 121)},
			"type",
			"must be 1 to 120 characters long, not 121",
		},
		{"the longest tag", lessor.JobFilter{Tag: strings.Repeat("é", 80)}, "", ""},
		{
			"a longer tag",
			lessor.JobFilter{Tag: strings.Repeat("é", 81)},
			"tag",
			"must be 1 to 80 characters long, not 81",
		},
		{"a type with a NUL", lessor.JobFilter{Type: "a\x00"}, "type", "must be UTF-8 text without NUL characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.filter.Limit = 100
			err := CheckList(c.filter)
			if c.field == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wrong(t, err, lessor.FieldError{Field: c.field, Message: c.message})
		})
	}
}

func TestBadCursorBlamesTheCursor(t *testing.T) {
	wrong(t, BadCursor(), lessor.FieldError{Field: "cursor", Message: "is not one that this list gave"})
}

func TestBatchHoldsOneToAThousand(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: true, 1000: true, 1001: false} {
		if err := BatchSize("jobs", n); (err == nil) != ok {
			t.Errorf("a batch of %d: error %v, want accepted %v", n, err, ok)
		}
	}
	wrong(t, BatchSize("jobs", 1001), lessor.FieldError{Field: "jobs", Message: "must be 1 to 1000, not 1001"})
}
