package scheduler

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// PutDefinition stores a whole definition and reports whether it is new. Storing an equal definition changes nothing.
func (s *Scheduler) PutDefinition(
	ctx context.Context, c Caller, id string, e lessor.Envelope,
) (shown lessor.Definition, created bool, err error) {
	d, err := s.defineAs(c, id, &e)
	if err != nil {
		return shown, false, err
	}
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		old, err := p.lockDefinitions(ctx, []string{id})
		if err != nil {
			return err
		}
		if err := rules.Inherit(d, &e, old[id]); err != nil {
			return err
		}
		if err := c.matches(old[id]); err != nil {
			return err
		}
		if err := s.recheckDefinition(d); err != nil {
			return err
		}
		created = old[id] == nil
		return p.put(ctx, c, []*rules.Definition{d}, old)
	})
	return rules.ShowDefinition(d), created, err
}

// CheckDefinition refuses a definition that PutDefinition would refuse for its fields, and stores nothing.
func (s *Scheduler) CheckDefinition(c Caller, id string, e lessor.Envelope) error {
	_, err := s.defineAs(c, id, &e)
	return err
}

// defineAs is define for the definition with an id.
func (s *Scheduler) defineAs(c Caller, id string, e *lessor.Envelope) (*rules.Definition, error) {
	d, err := s.define(c, e, "")
	var faults rules.Faults
	if err := faults.Add(err); err != nil {
		return nil, err
	}
	if e.JobID != nil && *e.JobID != id {
		if err := faults.Add(rules.WrongField("jobId", "must equal the id in the path")); err != nil {
			return nil, err
		}
	}
	return d, faults.Err()
}

// matches refuses a change of a definition that is not the version that the caller names; nil is none.
func (c Caller) matches(d *rules.Definition) error {
	if c.IfMatch == "" && c.IfNoneMatch == "" {
		return nil
	}
	version := ""
	if d != nil {
		version = rules.VersionOf(rules.ShowDefinition(d))
	}
	return c.matchesVersion(version)
}

// matchesVersion is matches for a version; "" is that of what does not exist.
func (c Caller) matchesVersion(version string) error {
	if err := rules.Match(c.IfMatch, version); err != nil {
		return err
	}
	return rules.Spare(c.IfNoneMatch, version)
}

// define turns an envelope into a definition, and checks its payload against the schema of its handler.
func (s *Scheduler) define(c Caller, e *lessor.Envelope, prefix string) (*rules.Definition, error) {
	book, err := s.schemas()
	if err != nil {
		return nil, err
	}
	d, err := rules.Define(e, c.Tenant, s.defineConfig(), prefix)
	if d == nil {
		return nil, err
	}
	return d, book.join(err, d.Handler, d.Payload, prefix)
}

// recheckDefinition checks a payload against the schemas again under the gate, because another node may have registered
// one since the first check.
func (s *Scheduler) recheckDefinition(d *rules.Definition) error {
	return s.handlers.Load().check(d.Handler, d.Payload, "")
}

func (s *Scheduler) defineConfig() rules.DefineConfig {
	return rules.DefineConfig{
		Submit: s.submitConfig(), Failures: s.cfg.Circuit.Failures, Cooldown: s.cfg.Circuit.Cooldown,
		Zone: time.LoadLocation,
	}
}

// oneDefinition runs decide on one definition that the caller may see, locked for change, and returns it as it is then.
func (s *Scheduler) oneDefinition(
	ctx context.Context, c Caller, id string, decide func(ctx context.Context, p *pass, d *rules.Definition) error,
) (shown lessor.Definition, err error) {
	return s.lockedDefinition(ctx, c, id, (*pass).lockDefinitions, decide)
}

// lockedDefinition is oneDefinition with a way to lock.
func (s *Scheduler) lockedDefinition(
	ctx context.Context, c Caller, id string,
	lock func(p *pass, ctx context.Context, ids []string) (map[string]*rules.Definition, error),
	decide func(ctx context.Context, p *pass, d *rules.Definition) error,
) (shown lessor.Definition, err error) {
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		locked, err := lock(p, ctx, []string{id})
		if err != nil {
			return err
		}
		d := locked[id]
		if d == nil || !c.sees(d.Tenant) {
			return lessor.ErrDefinitionNotFound
		}
		if err := c.matches(d); err != nil {
			return err
		}
		if err := decide(ctx, p, d); err != nil {
			return err
		}
		shown = rules.ShowDefinition(d)
		return nil
	})
	return shown, err
}

// SetPaused pauses or resumes a definition: no ticks, and its queued jobs wait.
func (s *Scheduler) SetPaused(ctx context.Context, c Caller, id string, paused bool) (lessor.Definition, error) {
	return s.oneDefinition(ctx, c, id, func(ctx context.Context, p *pass, d *rules.Definition) error {
		was := rules.ShowDefinition(d)
		if !rules.SetPaused(d, paused, ticker(d), p.now) {
			return nil
		}
		action := "definition.resumed"
		if paused {
			action = "definition.paused"
		}
		p.audit(c, action, "definition/"+id, was, rules.ShowDefinition(d))
		return p.saveDefinitions(ctx, []*rules.Definition{d})
	})
}

// DeleteDefinition removes a definition and cancels its jobs that wait; those that run go on, and all runs stay.
func (s *Scheduler) DeleteDefinition(ctx context.Context, c Caller, id string) error {
	remove := func(ctx context.Context, p *pass, d *rules.Definition) error {
		return p.deleteDefinitions(ctx, c, []*rules.Definition{d})
	}
	_, err := s.lockedDefinition(ctx, c, id, (*pass).lockWithCircuits, remove)
	return err
}

// Definition returns one definition.
func (s *Scheduler) Definition(ctx context.Context, c Caller, id string) (lessor.Definition, error) {
	d, err := s.definition(ctx, c, id)
	if err != nil {
		return lessor.Definition{}, err
	}
	return rules.ShowDefinition(d), nil
}

func (s *Scheduler) definition(ctx context.Context, c Caller, id string) (d *rules.Definition, err error) {
	err = s.view(ctx, "load definition", func(v View) error {
		found, err := v.Definitions(ctx, []string{id})
		d = found[id]
		return err
	})
	if err == nil && (d == nil || !c.sees(d.Tenant)) {
		err = lessor.ErrDefinitionNotFound
	}
	return d, err
}

// Definitions lists definitions, newest first, and the cursor of the next page ("" at the end).
func (s *Scheduler) Definitions(
	ctx context.Context, c Caller, f lessor.DefinitionFilter,
) ([]lessor.Definition, string, error) {
	if err := rules.CheckLimit(f.Limit); err != nil {
		return nil, "", err
	}
	tenant, err := c.within(f.Tenant)
	if err != nil {
		return nil, "", err
	}
	after, err := namedCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	q := DefinitionQuery{Tenant: tenant, Module: f.Module, After: after}
	page, next, err := largePageOf(ctx, s, "list definitions", f.Limit,
		func(d *rules.Definition) string { return PlaceOfDefinition(d).cursor() },
		func(v View, last **rules.Definition, n int) ([]*rules.Definition, error) {
			q := q
			if q.Limit = n; last != nil {
				q.After = PlaceOfDefinition(*last)
			}
			return v.DefinitionList(ctx, q)
		})
	return each(page, rules.ShowDefinition), next, err
}
