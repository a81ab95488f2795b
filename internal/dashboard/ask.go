package dashboard

import (
	"fmt"
	"time"

	"lessor"
)

// question asks before an action that cannot be taken back. It is a page; static/ask.js shows it in a dialog.
type question struct {
	Ask     string // what would be done, to which object
	Details []detail
	Means   string // what happens then
	Yes     string // the button
	Act     string // the form's address
	Job     string // the job of a lease; "" = none
	Back    string // the page that it was asked on
}

// detail is one line about the object.
type detail struct {
	Name, Text string
	Link       string         // "" = none
	Since      lessor.Instant // shown instead of Text
}

// ask returns a question as a page.
func (v *visit) ask(q question, fallback string) (view, error) {
	q.Act, q.Back = v.r.URL.EscapedPath(), v.origin(v.r.URL.Query(), fallback)
	return view{"Please confirm", "ask", q}, nil
}

func (v *visit) askRevoke() (view, error) {
	u, err := lessor.ParseUUID(v.r.URL.Query().Get("job"))
	if err != nil {
		return view{}, lessor.ErrJobNotFound
	}
	job, details, err := v.running(lessor.JobID{UUID: u})
	if err != nil {
		return view{}, err
	}
	if job.LeaseID == nil || job.LeaseID.String() != v.r.PathValue("id") {
		return view{}, v.leaseOver(job.ID, lessor.ErrLeaseNotFound)
	}
	return v.ask(question{
		Ask: "Revoke the lease of " + job.Type + "?", Details: details, Yes: "Revoke", Job: job.ID.String(),
		Means: "The worker loses the lease at once, and what it has not reported is lost. " + afterFailure(job),
	}, "/leases")
}

func (v *visit) askForceCancel() (view, error) {
	id, err := v.jobID()
	if err != nil {
		return view{}, err
	}
	job, details, err := v.running(id)
	if err != nil {
		return view{}, err
	}
	if job.LeaseID == nil {
		detail := fmt.Sprintf("no worker has the job: it is %s since %s", job.State, instant(job.UpdatedAt))
		return view{}, v.refusal(id, &lessor.Error{Code: lessor.CodeConflict, Detail: detail})
	}
	return v.ask(question{
		Ask: "Cancel " + job.Type + " by force?", Details: details, Yes: "Cancel by force",
		Means: "The job ends as cancelled now, without waiting for its worker. A worker that can be reached gets the " +
			"cancellation within two seconds; its result is dropped.",
	}, "/jobs/"+id.String())
}

func (v *visit) askMarkDead() (view, error) {
	id, err := v.jobID()
	if err != nil {
		return view{}, err
	}
	job, details, err := v.running(id)
	if err != nil {
		return view{}, err
	}
	return v.ask(question{
		Ask: "Mark " + job.Type + " dead?", Details: details, Yes: "Mark dead",
		Means: "The command is asked to stop, and its folder is removed. " + afterFailure(job),
	}, "/recovery")
}

// running returns a job, and the details about it and its worker.
func (v *visit) running(id lessor.JobID) (lessor.Job, []detail, error) {
	ctx := v.r.Context()
	job, err := v.scheduler.Job(ctx, v.caller, id)
	if err != nil {
		return job, nil, err
	}
	details := []detail{
		{Name: "job", Text: id.String(), Link: "/jobs/" + id.String()},
		{Name: "attempt", Text: fmt.Sprintf("%d of %d", job.Attempt, job.MaxAttempts)},
	}
	if job.Progress != nil {
		details = append(details, detail{Name: "progress", Text: percent(job.Progress)})
	}
	if job.LeaseID == nil {
		return job, details, nil
	}
	events, _, err := v.scheduler.Events(ctx, v.caller, id, maxEvents, "")
	if err != nil {
		return job, nil, err
	}
	lease, err := v.leaseOf(ctx, job, events)
	if lease != nil {
		ran := span(max(0, time.Since(lease.IssuedAt.Time())))
		details = append(details, detail{Name: "worker", Text: lease.WorkerID}, detail{Name: "runs for", Text: ran})
	}
	return job, details, err
}

// afterFailure says what becomes of a job whose attempt fails now.
func afterFailure(job lessor.Job) string {
	switch {
	case job.LeaseID == nil:
		return "The job itself stays as it is."
	case job.CancelRequested:
		return "The job ends as cancelled."
	case job.Attempt < job.MaxAttempts:
		return fmt.Sprintf("The attempt counts as failed; attempt %d of %d follows.", job.Attempt+1, job.MaxAttempts)
	}
	return "This is its last attempt: the job fails for good."
}

func (v *visit) askTrigger() (view, error) {
	def, err := v.scheduler.Definition(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	q := question{
		Ask: "Trigger " + def.JobID + "?", Yes: "Trigger",
		Details: []detail{
			{Name: "schedule", Text: def.JobID, Link: "/schedules/" + def.JobID},
			{Name: "handler", Text: def.HandlerID},
			{Name: "tenant", Text: def.TenantID.String()},
			{Name: "next tick", Since: def.NextTickAt},
		},
		Means: "A job is created now, in addition to the ticks, which stay as they are.",
	}
	if def.LockKey != "" {
		q.Means += " It waits while another job holds the lock " + def.LockKey + "."
	}
	return v.ask(q, "/schedules")
}

func (v *visit) askDrain() (view, error) {
	st, err := v.scheduler.Status(v.r.Context(), v.caller)
	if err != nil {
		return view{}, err
	}
	queue := st.QueueDepth
	return v.ask(question{
		Ask: "Drain the scheduler?", Yes: "Drain",
		Details: []detail{
			{Name: "leases", Text: count(st.ActiveLeases), Link: "/leases"},
			{Name: "queued", Text: count(queue.High + queue.Normal + queue.Low + queue.Background), Link: "/jobs"},
		},
		Means: "No node grants a lease until the drain is ended. Running jobs go on; new ones are accepted and wait.",
	}, "/")
}

func (v *visit) drain() error    { return v.setDraining(true, "draining") }
func (v *visit) endDrain() error { return v.setDraining(false, "drained") }

func (v *visit) setDraining(draining bool, kind string) error {
	if _, err := v.scheduler.SetDraining(v.r.Context(), v.caller, draining); err != nil {
		return err
	}
	name := "leases"
	if draining {
		name = "no leases"
	}
	return v.back("/", outcome{kind, name, "/leases"})
}
