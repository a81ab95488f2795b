package dashboard

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"lessor"
	"lessor/internal/indent"
	"lessor/internal/rules"
	"lessor/internal/token"
)

// maxEvents bounds the events of a record on a page; a job that was retried often has more.
const maxEvents = 200

// jobPage shows everything about one job.
type jobPage struct {
	Job     lessor.Job
	Lease   *leaseRow
	Why     *lessor.Why // for a job that waits
	Events  []lessor.Event
	More    bool // the record is longer
	Journal []journalRow
	Output  []outputPart
	Plain   bool // the output is shown without colours
	// Fence is that of the lease whose output is asked for, 0 = the last attempt's; Printers are leases with output.
	Fence     int64
	Printers  []lessor.OutputLease
	Timeline  timeline
	Carries   []carried
	CanCancel bool
	CanRetry  bool
	CanRevoke bool
	// AnswerTo is the question that may be answered here, and CanSend says that messages may be sent.
	AnswerTo *lessor.Question
	CanSend  bool
}

// The journal on a page: the last entries, and the beginning of the data of each, in bytes.
const (
	maxEntries   = 100
	maxEntryText = 2 << 10
)

type journalRow struct {
	lessor.JournalEntry
	Text  string
	Whole bool // Text is all of the data
}

// maxText bounds the text of a payload, result or checkpoint on a page, in bytes.
const maxText = 256 << 10

// carried is a payload, result or checkpoint as text.
type carried struct {
	Name, Title, Text string
	Whole             bool // Text is all of it
}

func (v *visit) job() (view, error) {
	id, err := v.jobID()
	if err != nil {
		return view{}, err
	}
	ctx := v.r.Context()
	p := jobPage{}
	if p.Job, err = v.scheduler.Job(ctx, v.caller, id); err != nil {
		return view{}, err
	}
	events, more, err := v.scheduler.Events(ctx, v.caller, id, maxEvents, "")
	if err != nil {
		return view{}, err
	}
	p.Events, p.More = events, more != ""
	now := lessor.At(time.Now())
	p.Timeline = newTimeline(p.Job, events, now)
	if err := p.wait(ctx, v); err != nil {
		return view{}, err
	}
	if p.Job.LeaseID != nil {
		if p.Lease, err = v.leaseOf(ctx, p.Job, events); err != nil {
			return view{}, err
		}
	}
	if err := p.readJournal(ctx, v); err != nil {
		return view{}, err
	}
	if err := p.readOutput(ctx, v); err != nil {
		return view{}, err
	}
	p.carry()
	waits := p.Job.State == lessor.Waiting
	open := p.Job.LeaseID != nil || p.Job.State == lessor.Queued || p.Job.RetryAt != 0 || waits
	p.CanCancel, p.CanSend = open && v.can(token.Submit), open && v.can(token.Submit)
	if waits && p.CanSend {
		p.AnswerTo = p.Job.Question
	}
	ended := p.Job.LeaseID == nil && p.Job.State != lessor.Queued && !waits
	p.CanRetry = ended && p.Job.State != lessor.Completed && v.can(token.Submit)
	p.CanRevoke = p.Job.LeaseID != nil && v.can(token.Revoke)
	return view{p.Job.Type, "job", p}, nil
}

// wait reads why a job that waits does not run.
func (p *jobPage) wait(ctx context.Context, v *visit) error {
	if p.Job.LeaseID != nil || p.Job.State != lessor.Queued && p.Job.State != lessor.Waiting && p.Job.RetryAt == 0 {
		return nil
	}
	why, err := v.scheduler.Why(ctx, v.caller, p.Job.ID)
	p.Why = &why
	return err
}

// readJournal reads the last entries of the journal.
func (p *jobPage) readJournal(ctx context.Context, v *visit) error {
	if p.Job.JournalEntries == 0 {
		return nil
	}
	after := strconv.Itoa(max(0, p.Job.JournalEntries-maxEntries))
	entries, _, err := v.scheduler.Journal(ctx, v.caller, p.Job.ID, maxEntries, after)
	for _, e := range entries {
		text, whole := indent.JSON(e.Data, "", maxEntryText)
		p.Journal = append(p.Journal, journalRow{e, string(text), whole})
	}
	return err
}

// carry collects payload, result and checkpoint.
func (p *jobPage) carry() {
	for _, c := range []struct {
		name, title string
		raw         []byte
	}{
		{"payload", "Payload", p.Job.Payload},
		{"result", "Result", p.Job.Result},
		{"checkpoint", "Checkpoint", p.Job.Checkpoint},
	} {
		if len(c.raw) > 0 && !bytes.Equal(c.raw, []byte("null")) {
			text, whole := indent.JSON(c.raw, "", maxText)
			p.Carries = append(p.Carries, carried{c.name, c.title, string(text), whole})
		}
	}
}

// leaseOf finds the live lease of a job among those of its worker, which is in the record. It returns nil if the lease
// has just ended.
func (v *visit) leaseOf(ctx context.Context, job lessor.Job, events []lessor.Event) (*leaseRow, error) {
	worker := ""
	for _, e := range events {
		if e.LeaseID != nil && *e.LeaseID == *job.LeaseID {
			worker = rules.WorkerOf(e.Actor)
			break
		}
	}
	if worker == "" || !v.can(token.ReadLeases) {
		return nil, nil
	}
	list, _, err := v.scheduler.Leases(ctx, v.caller, worker, leasesRead, "")
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.ID == *job.LeaseID {
			row := newLeaseRow(l, lessor.At(time.Now()))
			return &row, nil
		}
	}
	return nil, nil
}
