package dashboard

import (
	"strconv"

	"lessor"
)

// bulkQuestion is the question before an operation.
type bulkQuestion struct {
	Action  string
	Filter  jobFilter
	Count   int
	AtLeast bool // there are more than one operation touches
}

var errBulk = &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "a bulk operation is cancel or retry, on 1 to 10000 jobs"}

// bulkAsk counts what an operation would touch.
func (v *visit) bulkAsk() (view, error) {
	q := v.r.URL.Query()
	p := bulkQuestion{Action: q.Get("action"), Filter: readFilter(q)}
	if p.Action != "cancel" && p.Action != "retry" {
		return view{}, errBulk
	}
	ask, err := p.Filter.ask()
	if err != nil {
		return view{}, err
	}
	for ask.Limit = bulkPage; p.Count < maxBulk; {
		jobs, next, err := v.scheduler.Jobs(v.r.Context(), v.caller, ask)
		if err != nil {
			return view{}, err
		}
		p.Count += len(jobs)
		if ask.Cursor = next; next == "" {
			return view{"Bulk " + p.Action, "bulk", p}, nil
		}
	}
	p.AtLeast = true
	return view{"Bulk " + p.Action, "bulk", p}, nil
}

// bulkStart begins an operation on as many jobs as were counted.
func (v *visit) bulkStart() error {
	found, err := strconv.Atoi(v.form.Get("count"))
	action := v.form.Get("action")
	if err != nil || found < 1 || found > maxBulk || action != "cancel" && action != "retry" {
		return errBulk
	}
	filter := readFilter(v.form)
	ask, err := filter.ask()
	if err != nil {
		return err
	}
	id, err := v.bulk.add(&bulk{caller: v.caller, ask: ask, bulkState: bulkState{Action: action, Filter: filter, Found: found}})
	if err != nil {
		return err
	}
	v.redirect("/jobs/bulk/" + id)
	return nil
}

func (v *visit) bulkProgress() (view, error) {
	state, ok := v.bulk.find(v.r.PathValue("id"), v.caller)
	if !ok {
		return view{}, &lessor.Error{Code: lessor.CodeRouteNotFound, Detail: "this operation is not known here; a restart forgets them"}
	}
	return view{"Bulk " + state.Action, "progress", state}, nil
}
