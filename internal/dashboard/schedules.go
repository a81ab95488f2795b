package dashboard

import (
	"context"
	"slices"
	"time"

	"lessor"
	"lessor/internal/indent"
	"lessor/internal/rules"
	"lessor/internal/token"
)

// schedulesPage lists definitions.
type schedulesPage struct {
	Rows   []scheduleRow
	Next   string
	CanAct bool
}

// scheduleRow is a definition, its last ticks, and its circuit.
type scheduleRow struct {
	lessor.Definition
	Ticks   []tickRow // newest first
	Circuit lessor.Circuit
	Coming  []lessor.Instant
}

// tickRow is a tick and what became of its job: the job's state, or the outcome of the tick if there is no job.
type tickRow struct {
	lessor.Tick
	Times  int
	Became string
}

// Last returns the newest tick, nil if there is none.
func (r scheduleRow) Last() *tickRow {
	if len(r.Ticks) == 0 {
		return nil
	}
	return &r.Ticks[0]
}

// Strip returns the ticks as a picture shows them, oldest first.
func (r scheduleRow) Strip() []tickRow {
	ticks := slices.Clone(r.Ticks)
	slices.Reverse(ticks)
	return ticks
}

const (
	schedulesShown = 25 // each needs two reads
	stripTicks     = 30
	ticksAhead     = 10
	circuitsRead   = 1000
)

func (v *visit) schedules() (view, error) {
	ctx := v.r.Context()
	list, next, err := v.scheduler.Definitions(ctx, v.caller, lessor.DefinitionFilter{
		Limit: schedulesShown, Cursor: v.r.URL.Query().Get("cursor"),
	})
	if err != nil {
		return view{}, err
	}
	p := schedulesPage{Next: v.next(next), CanAct: v.can(token.Schedule)}
	circuits, err := v.circuits(ctx)
	if err != nil {
		return view{}, err
	}
	for _, def := range list {
		row, err := v.scheduleRow(ctx, def, circuits)
		if err != nil {
			return view{}, err
		}
		p.Rows = append(p.Rows, row)
	}
	return view{"Schedules", "schedules", p}, v.follow(ctx, p.Rows)
}

// circuits returns the circuits of definitions that failed recently, by id; all others are closed.
func (v *visit) circuits(ctx context.Context) (map[string]lessor.Circuit, error) {
	list, _, err := v.scheduler.Circuits(ctx, v.caller, circuitsRead, "")
	all := make(map[string]lessor.Circuit, len(list))
	for _, c := range list {
		all[c.JobID] = c
	}
	return all, err
}

func (v *visit) scheduleRow(
	ctx context.Context, def lessor.Definition, circuits map[string]lessor.Circuit,
) (scheduleRow, error) {
	row := scheduleRow{Definition: def, Circuit: lessor.Circuit{JobID: def.JobID, State: lessor.CircuitClosed}}
	if c, ok := circuits[def.JobID]; ok {
		row.Circuit = c
	}
	var err error
	if row.Coming, err = v.scheduler.NextTicks(ctx, v.caller, def.JobID, ticksAhead); err != nil {
		return row, err
	}
	ticks, _, err := v.scheduler.Ticks(ctx, v.caller, def.JobID, lessor.TickFilter{
		From: stripFrom(row.Coming), Limit: 4 * stripTicks,
	})
	for _, t := range slices.Backward(ticks[max(0, len(ticks)-stripTicks):]) {
		row.Ticks = append(row.Ticks, tickRow{Tick: t, Times: int(t.Count), Became: string(t.Outcome)})
	}
	return row, err
}

// follow reads what became of the jobs of ticks.
func (v *visit) follow(ctx context.Context, rows []scheduleRow) error {
	var ids []lessor.JobID
	for _, r := range rows {
		for _, t := range r.Ticks {
			if t.RunID != nil {
				ids = append(ids, *t.RunID)
			}
		}
	}
	jobs, err := v.scheduler.Watched(ctx, ids)
	for _, r := range rows {
		for i, t := range r.Ticks {
			if t.RunID == nil {
				continue
			}
			job, ok := jobs[*t.RunID]
			switch {
			case !ok: // a run that the circuit refused, or a job that is no longer kept
				r.Ticks[i].RunID = nil
			case !job.Final && rules.FailedForGood(job.State):
				r.Ticks[i].Became = "retrying"
			default:
				r.Ticks[i].Became = string(job.State)
			}
		}
	}
	return err
}

// stripFrom returns the instant from which ticks are read. The scheduler lists them oldest first, and the page needs
// the newest. The next ticks show how far ticks lie apart, so the page starts twice as far back as the strip reaches.
func stripFrom(coming []lessor.Instant) lessor.Instant {
	now := lessor.At(time.Now())
	if len(coming) < 2 {
		return now.Add(-365 * 24 * time.Hour)
	}
	apart := coming[len(coming)-1].Sub(coming[0]) / time.Duration(len(coming)-1)
	return now.Add(-2 * stripTicks * max(apart, time.Second))
}

// schedulePage is one definition with its preview.
type schedulePage struct {
	scheduleRow
	Text   string // the payload
	Whole  bool   // Text is complete
	CanAct bool
}

func (v *visit) schedule() (view, error) {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	def, err := v.scheduler.Definition(ctx, v.caller, id)
	if err != nil {
		return view{}, err
	}
	circuits, err := v.circuits(ctx)
	if err != nil {
		return view{}, err
	}
	row, err := v.scheduleRow(ctx, def, circuits)
	if err != nil {
		return view{}, err
	}
	err = v.follow(ctx, []scheduleRow{row})
	text, whole := indent.JSON(def.Payload, "", maxText)
	return view{def.JobID, "schedule", schedulePage{row, string(text), whole, v.can(token.Schedule)}}, err
}

// downloadSchedule sends a definition's payload as a file.
func (v *visit) downloadSchedule() error {
	def, err := v.scheduler.Definition(v.r.Context(), v.caller, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	v.sendFile("payload.json", def.Payload)
	return nil
}

func (v *visit) pauseSchedule() error  { return v.setPaused(true, "paused") }
func (v *visit) resumeSchedule() error { return v.setPaused(false, "resumed") }

func (v *visit) setPaused(paused bool, kind string) error {
	id := v.r.PathValue("id")
	if _, err := v.scheduler.SetPaused(v.r.Context(), v.caller, id, paused); err != nil {
		return err
	}
	return v.back("/schedules", aboutSchedule(kind, id))
}

func (v *visit) trigger() error {
	run, err := v.scheduler.Trigger(v.r.Context(), v.caller, v.r.PathValue("id"), nil)
	if err != nil {
		return err
	}
	return v.back("/schedules", v.aboutJob("triggered", run))
}

func (v *visit) resetCircuit() error {
	id := v.r.PathValue("id")
	if _, err := v.scheduler.ResetCircuit(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	return v.back("/schedules", aboutSchedule("reset", id))
}
