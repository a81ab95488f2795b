package scheduler

import "lessor/internal/rules"

// cohortMin is from how many jobs on a row that they share costs less than a row each.
const cohortMin = 8

// cohorts returns the cohort of each new job: jobs with nothing to tell but that they were submitted, and that stand behind each other.
func cohorts(specs []*rules.Spec) []int64 {
	all := make([]int64, len(specs))
	for i := 0; i < len(specs); {
		n := 0
		for n < rules.CohortMax && i+n < len(specs) && specs[i+n].RunAt == 0 && specs[i+n].ResumedFrom.IsZero() {
			n++
		}
		if n >= cohortMin {
			for j := range n {
				all[i+j] = specs[i].Seq
			}
		}
		i += max(n, 1)
	}
	return all
}
