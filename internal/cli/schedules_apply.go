package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/manifest"
	"lessor/internal/table"
)

type applyFlags struct {
	file                              string
	dryRun, exitCode, prune, pruneAll bool
}

// appliedShown is what a manifest did or would do, and where the server has drifted from the file.
type appliedShown struct {
	ModuleID string `json:"moduleId"`
	lessor.Applied
	Extra  []string `json:"extra"`  // on the server, not in the file, and not pruned
	Paused []string `json:"paused"` // in the file, and paused by hand
}

func (a *app) schedulesApplyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Store the definitions of a manifest, all or none",
		Long: `Apply reads manifests in YAML or JSON, one per document, and stores each one completely or not at all. It
shows what is created, changed field by field, and removed, and where the server has drifted from the file: definitions
of the module that are not in it, and definitions that were paused by hand. Applying the same file again changes
nothing. With --dry-run --exit-code it exits with 2 if it would change something.`,
		Example: `  lessor schedules apply -f jobs.yaml --dry-run
  lessor schedules apply -f jobs.yaml --prune
  generate-jobs | lessor schedules apply -f -`,
	}
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file with the manifests, or - for standard input (required)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "with --dry-run: exit with 2 if something would change")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "remove the module's definitions that are not in the file")
	cmd.Flags().BoolVar(&f.pruneAll, "prune-all", false, "prune, also if the file has no definitions")
	require(cmd, "file")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		manifests, err := a.readManifests(f.file)
		if err != nil {
			return usageError{err}
		}
		for _, m := range manifests {
			if err := f.set(cmd, m); err != nil {
				return err
			}
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		differs := false
		for _, m := range manifests {
			applied, err := a.apply(cmd.Context(), c, m)
			if err != nil {
				return placed(m, err)
			}
			differs = differs || len(applied.Created)+len(applied.Changed)+len(applied.Removed) > 0
		}
		if f.exitCode && differs {
			return errDiffers
		}
		return nil
	})
	return cmd
}

// errDiffers is what --exit-code reports: the server does not have what the file says.
var errDiffers = errors.New("the server differs from the file: apply it without --dry-run")

// set gives a manifest the flags of the command line, which take precedence.
func (f applyFlags) set(cmd *cobra.Command, m *manifest.Manifest) error {
	if cmd.Flags().Changed("dry-run") {
		m.DryRun = f.dryRun
	}
	if cmd.Flags().Changed("prune") || f.pruneAll {
		m.Prune = f.prune || f.pruneAll
	}
	switch {
	case f.exitCode && !m.DryRun:
		return usagef("--exit-code says what would change: use it with --dry-run")
	case m.Prune && len(m.JobIDs) == 0 && !f.pruneAll:
		return usagef("module %s has no definitions in the file, so pruning would remove all that it has on the "+
			"server: use --prune-all if that is what you want", m.ModuleID)
	}
	return nil
}

func (a *app) readManifests(file string) ([]*manifest.Manifest, error) {
	if file == "-" {
		raw, err := io.ReadAll(io.LimitReader(a.In, maxInput+1))
		if err != nil {
			return nil, err
		}
		return manifest.Read("standard input", raw)
	}
	raw, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return manifest.Read(file, raw)
}

// placed adds to a refusal the places of the refused fields in the file.
func placed(m *manifest.Manifest, err error) error {
	e, ok := errors.AsType[*lessor.Error](err)
	if !ok || len(e.Fields) == 0 {
		return subjectError{"module " + m.ModuleID, err}
	}
	refusal := *e
	refusal.Fields = slices.Clone(e.Fields)
	for i, f := range refusal.Fields {
		refusal.Fields[i].Field = m.Where(f.Field) + " " + f.Field
	}
	return &refusal
}

// apply sends a manifest, and shows what it did or would do.
func (a *app) apply(ctx context.Context, c *client.Client, m *manifest.Manifest) (lessor.Applied, error) {
	shown := appliedShown{ModuleID: m.ModuleID, Extra: []string{}, Paused: []string{}}
	var body lessor.Manifest
	if err := json.Unmarshal(m.Body(), &body); err != nil {
		return shown.Applied, usageError{err}
	}
	before, err := storedBy(ctx, c, body)
	if err != nil {
		return shown.Applied, err
	}
	if shown.Applied, err = c.Apply(ctx, body); err != nil {
		return shown.Applied, err
	}
	for id, d := range before {
		switch named := slices.Contains(m.JobIDs, id); {
		case !named && !slices.Contains(shown.Removed, id):
			shown.Extra = append(shown.Extra, id)
		case named && d.Paused:
			shown.Paused = append(shown.Paused, id)
		}
	}
	slices.Sort(shown.Extra)
	slices.Sort(shown.Paused)
	if a.json {
		return shown.Applied, a.printJSON(shown)
	}
	after := map[string]lessor.Definition{}
	for _, d := range shown.Definitions {
		after[d.JobID] = d
	}
	if !shown.DryRun && len(shown.Changed) > 0 {
		if after, err = storedBy(ctx, c, body); err != nil {
			return shown.Applied, err
		}
	}
	return shown.Applied, a.showApplied(shown, before, after)
}

// storedBy returns the definitions that a manifest's module has for its tenant.
func storedBy(ctx context.Context, c *client.Client, m lessor.Manifest) (map[string]lessor.Definition, error) {
	f := lessor.DefinitionFilter{Module: text(m.ModuleID), Limit: maxPage}
	if m.TenantID != nil {
		u, err := lessor.ParseUUID(*m.TenantID)
		if err != nil {
			return nil, nil // the server will refuse it with a reason
		}
		f.Tenant = &lessor.TenantID{UUID: u}
	}
	stored := map[string]lessor.Definition{}
	for d, err := range c.AllDefinitions(ctx, f) {
		if err != nil {
			return nil, err
		}
		stored[d.JobID] = d
	}
	return stored, nil
}

func (a *app) showApplied(s appliedShown, before, after map[string]lessor.Definition) error {
	line := func(sign, id, note string) { a.say("%s", table.Clean(fmt.Sprintf("%s %s%s", sign, id, note))) }
	for _, id := range s.Created {
		line("+", id, "")
	}
	for _, id := range s.Changed {
		line("~", id, "")
		for _, d := range differences(before[id], after[id]) {
			a.say("    %s", table.Clean(d))
		}
	}
	for _, id := range s.Removed {
		line("-", id, "")
	}
	for _, id := range s.Extra {
		line("?", id, ": on the server, not in the file; --prune removes it")
	}
	for _, id := range s.Paused {
		line("?", id, ": paused by hand")
	}
	dry := ""
	if s.DryRun {
		dry = " (dry run: nothing was changed)"
	}
	t := a.table()
	t.Row(fmt.Sprintf("%s: %d created, %d changed, %d unchanged, %d removed%s",
		s.ModuleID, len(s.Created), len(s.Changed), len(s.Unchanged), len(s.Removed), dry))
	return t.Flush()
}
