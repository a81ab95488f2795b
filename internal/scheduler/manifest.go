package scheduler

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// pageLimit is the size of pages that are read to the end.
const pageLimit = 1000

// CheckManifest refuses a manifest that Apply would refuse for its fields, and stores nothing.
func (s *Scheduler) CheckManifest(c Caller, m lessor.Manifest) error {
	_, err := s.plan(c, &m)
	return err
}

func (s *Scheduler) plan(c Caller, m *lessor.Manifest) (*rules.ManifestPlan, error) {
	return rules.Manifest(m, c.Tenant, func(e *lessor.Envelope, prefix string) (*rules.Definition, error) {
		return s.define(c, e, prefix)
	})
}

// Apply stores a module's definitions for one tenant, all or none, and with prune removes its others.
func (s *Scheduler) Apply(ctx context.Context, c Caller, m lessor.Manifest) (lessor.Applied, error) {
	plan, err := s.plan(c, &m)
	if err != nil {
		return lessor.Applied{}, err
	}
	var out lessor.Applied
	err = s.change(ctx, c, func(ctx context.Context, p *pass) error {
		known, err := p.module(ctx, plan)
		if err != nil {
			return err
		}
		ids := plan.IDs()
		for _, d := range known {
			if !slices.Contains(ids, d.ID) {
				ids = append(ids, d.ID)
			}
		}
		old, err := p.lockWithCircuits(ctx, ids) // it may delete some
		if err != nil {
			return err
		}
		for _, d := range plan.Definitions {
			if err := s.recheckDefinition(d); err != nil {
				return err
			}
		}
		var removed []*rules.Definition
		if out, removed, err = plan.Against(old); err != nil || plan.DryRun {
			return err
		}
		if err := p.deleteDefinitions(ctx, c, removed); err != nil {
			return err
		}
		return p.put(ctx, c, plan.Definitions, old)
	})
	return out, err
}
