package scheduler

import (
	"slices"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

// TestCohorts: new jobs that stand behind each other, and of which there is nothing else to tell, share a row, if it is worth one.
func TestCohorts(t *testing.T) {
	later := func(s *rules.Spec) { s.RunAt = 1 }
	resumed := func(s *rules.Spec) { s.ResumedFrom = lessor.JobID{UUID: lessor.UUID{1}} }
	type run struct {
		jobs   int
		cohort int64
	}
	for name, c := range map[string]struct {
		jobs int
		edit map[int]func(*rules.Spec)
		want []run
	}{
		"none":                {},
		"too few":             {jobs: cohortMin - 1, want: []run{{cohortMin - 1, 0}}},
		"just enough":         {jobs: cohortMin, want: []run{{cohortMin, 100}}},
		"more than one":       {jobs: rules.CohortMax + cohortMin, want: []run{{rules.CohortMax, 100}, {cohortMin, 100 + rules.CohortMax}}},
		"a rest":              {jobs: rules.CohortMax + 1, want: []run{{rules.CohortMax, 100}, {1, 0}}},
		"one for later":       {jobs: 20, edit: map[int]func(*rules.Spec){10: later}, want: []run{{10, 100}, {1, 0}, {9, 111}}},
		"one that is resumed": {jobs: 20, edit: map[int]func(*rules.Spec){0: resumed, 5: resumed}, want: []run{{6, 0}, {14, 106}}},
	} {
		var specs []*rules.Spec
		for i := range c.jobs {
			s := &rules.Spec{Seq: 100 + int64(i)}
			if edit := c.edit[i]; edit != nil {
				edit(s)
			}
			specs = append(specs, s)
		}
		var want []int64
		for _, r := range c.want {
			want = append(want, slices.Repeat([]int64{r.cohort}, r.jobs)...)
		}
		if got := cohorts(specs); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
