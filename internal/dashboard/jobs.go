package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/token"
)

// pageSize is the number of rows of a list.
const pageSize = 50

// jobsPage is a list of jobs, and its filter.
type jobsPage struct {
	Filter jobFilter
	States []lessor.State
	Jobs   []lessor.Job
	Next   string // address of the next page, "" at the end
	CanAct bool
}

// jobFilter is a filter as it is written in an address.
type jobFilter struct {
	State, Type, Tenant, Tag string
}

func readFilter(q url.Values) jobFilter {
	word := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return jobFilter{word("state"), word("type"), word("tenant_id"), word("tag")}
}

// Empty reports whether the filter selects all jobs.
func (f jobFilter) Empty() bool { return f == jobFilter{} }

// Query returns the filter as part of an address.
func (f jobFilter) Query() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "type": f.Type, "tenant_id": f.Tenant, "tag": f.Tag} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// ask returns the filter for the scheduler.
func (f jobFilter) ask() (lessor.JobFilter, error) {
	a := lessor.JobFilter{State: lessor.State(f.State), Type: f.Type, Tag: f.Tag}
	var err error
	a.Tenant, err = readTenant(f.Tenant)
	return a, err
}

// readTenant reads the id of a tenant; "" gives nil.
func readTenant(s string) (*lessor.TenantID, error) {
	if s == "" {
		return nil, nil
	}
	u, err := lessor.ParseUUID(s)
	if err != nil {
		return nil, &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "a tenant id is a uuid"}
	}
	return &lessor.TenantID{UUID: u}, nil
}

func (v *visit) jobs() (view, error) {
	q := v.r.URL.Query()
	p := jobsPage{Filter: readFilter(q), States: lessor.States(), CanAct: v.can(token.Submit)}
	ask, err := p.Filter.ask()
	if err != nil {
		return view{"Jobs", "jobs", p}, err
	}
	ask.Limit, ask.Cursor = pageSize, q.Get("cursor")
	var next string
	p.Jobs, next, err = v.scheduler.Jobs(v.r.Context(), v.caller, ask)
	p.Next = v.next(next)
	return view{"Jobs", "jobs", p}, err
}

// next returns the address of the next page.
func (v *visit) next(cursor string) string {
	if cursor == "" {
		return ""
	}
	q := v.r.URL.Query()
	q.Set("cursor", cursor)
	return v.r.URL.Path + "?" + q.Encode()
}

// jobID returns the id in the path. There is no job with an ill-formed id.
func (v *visit) jobID() (lessor.JobID, error) {
	u, err := lessor.ParseUUID(v.r.PathValue("id"))
	if err != nil {
		return lessor.JobID{}, lessor.ErrJobNotFound
	}
	return lessor.JobID{UUID: u}, nil
}

// cancel cancels a job that waits, or asks the worker of one that runs to stop.
func (v *visit) cancel() error {
	id, err := v.jobID()
	if err != nil {
		return err
	}
	before, err := v.scheduler.Job(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	job, err := v.scheduler.Cancel(v.r.Context(), v.caller, id, false)
	kind := "cancelling"
	switch {
	case err != nil:
		return v.refusal(id, err)
	case before.State == lessor.Queued && job.State == lessor.Cancelled:
		kind = "withdrawn"
	case job.State == lessor.Cancelled:
		kind = "cancelled"
	}
	return v.back("/jobs/"+id.String(), v.aboutJob(kind, id))
}

func (v *visit) forceCancel() error {
	return v.onJob("cancelled", func(id lessor.JobID) error {
		_, err := v.scheduler.Cancel(v.r.Context(), v.caller, id, true)
		return err
	})
}

func (v *visit) retry() error {
	return v.onJob("retried", func(id lessor.JobID) error {
		_, err := v.scheduler.Retry(v.r.Context(), v.caller, id)
		return err
	})
}

// answerJob answers the question that the page has shown.
func (v *visit) answerJob() error {
	return v.onJob("answered", func(id lessor.JobID) error {
		a := lessor.Answer{QuestionID: new(v.form.Get("question")), Answer: new(v.form.Get("answer"))}
		_, err := v.scheduler.Answer(v.r.Context(), v.caller, id, a)
		return err
	})
}

func (v *visit) messageJob() error {
	return v.onJob("sent", func(id lessor.JobID) error {
		_, err := v.scheduler.Message(v.r.Context(), v.caller, id, lessor.MessageAsk{Text: new(v.form.Get("text"))})
		return err
	})
}

// onJob calls do for the job in the path, and returns to the page of the form.
func (v *visit) onJob(kind string, do func(lessor.JobID) error) error {
	id, err := v.jobID()
	if err != nil {
		return err
	}
	if err := do(id); err != nil {
		return v.refusal(id, err)
	}
	return v.back("/jobs/"+id.String(), v.aboutJob(kind, id))
}

// download sends the payload, result or checkpoint of a job.
func (v *visit) download() error {
	id, err := v.jobID()
	if err != nil {
		return err
	}
	job, err := v.scheduler.Job(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	part := v.r.PathValue("part")
	body := map[string][]byte{"payload": job.Payload, "result": job.Result, "checkpoint": job.Checkpoint}[part]
	if body == nil {
		return &lessor.Error{Code: lessor.CodeRouteNotFound, Detail: "the job has nothing of that name"}
	}
	v.sendFile(part+"-"+id.String()+".json", body)
	return nil
}

// sendFile sends data of callers as a file, never as a page.
func (v *visit) sendFile(name string, body []byte) {
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(name))
	h.Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(body) // an error means that the visitor is gone
}
