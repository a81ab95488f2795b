package scheduler

import (
	"context"
	"strconv"

	"lessor"
	"lessor/internal/rules"
)

// Append appends to the journal of a leased job, and extends the lease.
func (s *Scheduler) Append(
	ctx context.Context, c Caller, id lessor.LeaseID, a lessor.JournalAppend,
) (lessor.JournalAnswer, error) {
	ask, err := rules.JournalAppend(&a, s.cfg.Journal)
	if err != nil {
		return lessor.JournalAnswer{}, err
	}
	b, err := s.beatOne(ctx, c, beat{id: id, ask: ask})
	return lessor.JournalAnswer{HeartbeatAnswer: b.answer, Numbers: b.numbers}, err
}

// Journal returns entries of a job's journal, oldest first, after the one with a number ("" = from the first), and the
// number after which the next page begins ("" at the end).
func (s *Scheduler) Journal(
	ctx context.Context, c Caller, id lessor.JobID, limit int, after string,
) ([]lessor.JournalEntry, string, error) {
	if err := rules.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	last := 0
	if after != "" {
		var err error
		if last, err = strconv.Atoi(after); err != nil || last < 0 {
			return nil, "", rules.WrongField("after", "must be the number of an entry, not %q", after)
		}
	}
	entries, next := []lessor.JournalEntry{}, ""
	err := s.view(ctx, "read journal", func(v View) (err error) {
		specs, err := v.Specs(ctx, []lessor.JobID{id})
		if err != nil {
			return err
		}
		if spec := specs[id]; spec == nil || !c.sees(spec.Lane.Tenant) {
			return lessor.ErrJobNotFound
		}
		entries, next, err = journalPage(ctx, v, id, last, limit)
		return err
	})
	return entries, next, err
}

// journalPage reads a page of entries, in steps of listStep, up to maxPageBytes.
func journalPage(
	ctx context.Context, v View, id lessor.JobID, last, limit int,
) (page []lessor.JournalEntry, next string, err error) {
	page = []lessor.JournalEntry{}
	for bytes := 0; ; {
		step := min(listStep, limit-len(page))
		entries, err := v.Entries(ctx, id, last, step)
		if err != nil {
			return nil, "", err
		}
		for _, e := range entries {
			page, last = append(page, e.JournalEntry), e.N
			bytes += len(e.Data)
		}
		switch {
		case len(entries) < step:
			return page, "", nil
		case len(page) == limit || bytes >= maxPageBytes/2: // a step adds at most a quarter of it
			return page, strconv.Itoa(last), nil
		}
	}
}
