package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"lessor/client"
	"lessor/internal/store/sqlite"
)

// backupReport is what is printed about a backup.
type backupReport struct {
	File    string  `json:"file"`
	Bytes   int64   `json:"bytes"`
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
}

func (a *app) backupCommand() *cobra.Command {
	var to string
	var force bool
	cmd := a.reaching(&cobra.Command{
		Use:   "backup",
		Short: "Copy a running server's store to a file, and check that it restores",
		Long: `Backup asks a running server for a consistent copy of its store, writes it beside the target, reads it whole to
see that it restores, and only then gives it its name. It needs an admin token.

To restore: stop the server, put the copy in the place of lessor.db, remove lessor.db-wal, lessor.db-shm and lessor.db-mark, start.`,
		Example: "  lessor backup --to /backup/lessor-$(date +%F).db",
	})
	cmd.Flags().StringVar(&to, "to", "", "file to write (required)")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	require(cmd, "to")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		report, err := a.backup(cmd.Context(), to, force)
		if err != nil {
			return err
		}
		return display(a, report, func(t table, r backupReport, _ time.Time) {
			t.row(fmt.Sprintf("%s: %d bytes, %d jobs, checked, %.1f s", r.File, r.Bytes, r.Jobs, r.Seconds))
		})
	})
	return cmd
}

func (a *app) backup(ctx context.Context, to string, force bool) (_ backupReport, err error) {
	began := time.Now()
	if err := checkTarget(to, force); err != nil {
		return backupReport{}, err
	}
	c, err := a.client()
	if err != nil {
		return backupReport{}, err
	}
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*.part")
	if err != nil {
		return backupReport{}, fmt.Errorf("make a file beside %s: %w", to, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	size, err := a.copyStore(ctx, c, f)
	if err != nil {
		return backupReport{}, err
	}
	jobs, err := sqlite.Verify(ctx, f.Name())
	if err != nil {
		return backupReport{}, fmt.Errorf("the copy does not restore, and was thrown away: %w", err)
	}
	if err := checkTarget(to, force); err != nil { // it may have come in the meantime
		return backupReport{}, err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return backupReport{}, fmt.Errorf("name the copy: %w", err)
	}
	return backupReport{File: to, Bytes: size, Jobs: jobs, Seconds: time.Since(began).Seconds()}, syncFolder(filepath.Dir(to))
}

// checkTarget refuses a target that would be lost.
func checkTarget(to string, force bool) error {
	info, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the target: %w", err)
	case info.IsDir():
		return refusedError{fmt.Errorf("%s is a folder: give a file", to)}
	case !force:
		return refusedError{fmt.Errorf("%s is there already: use --force to replace it, or another name", to)}
	}
	return nil
}

// copyStore writes the store to f, durably, and closes it.
func (a *app) copyStore(ctx context.Context, c *client.Client, f *os.File) (size int64, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	m := a.meter(mebibytes)
	defer m.end()
	size, err = c.Backup(ctx, io.MultiWriter(f, &copied{meter: m}))
	if err != nil {
		return size, err
	}
	if err := f.Sync(); err != nil {
		return size, fmt.Errorf("make the copy durable: %w", err)
	}
	return size, nil
}

// syncFolder makes a new name durable. Systems on which a folder cannot be synced do it by themselves.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("make the copy's name durable: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
