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
	"lessor/internal/table"
)

// backupReport is printed after a backup.
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
		Short: "Copy a running server's store to a file, and check the copy",
		Long: `Backup asks a running server for a consistent copy of its store, writes it beside the target, reads all
of it to check that it can be restored, and only then gives it its name. It needs an admin token.

To restore, stop the server, replace lessor.db with the copy, remove lessor.db-wal, lessor.db-shm and lessor.db-mark,
and start.`,
		Example: "  lessor backup --to /backup/lessor-$(date +%F).db",
	})
	cmd.Flags().StringVar(&to, "to", "", "file to write (required)")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	require(cmd, "to")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		report, err := a.backup(cmd.Context(), to, force)
		if err != nil {
			return err
		}
		return display(a, report, func(t *table.Table, r backupReport, _ time.Time) {
			t.Row(fmt.Sprintf("%s: %d bytes, %d jobs, checked, %.1f s", r.File, r.Bytes, r.Jobs, r.Seconds))
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
		return backupReport{}, fmt.Errorf("create a file beside %s: %w", to, err)
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
		return backupReport{}, fmt.Errorf("the copy cannot be restored, and was deleted: %w", err)
	}
	if err := checkTarget(to, force); err != nil { // another program may have created it in the meantime
		return backupReport{}, err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return backupReport{}, fmt.Errorf("rename the copy: %w", err)
	}
	r := backupReport{File: to, Bytes: size, Jobs: jobs, Seconds: time.Since(began).Seconds()}
	return r, syncFolder(filepath.Dir(to))
}

// checkTarget refuses to overwrite a file without --force.
func checkTarget(to string, force bool) error {
	info, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("check the target: %w", err)
	case info.IsDir():
		return refusedError{fmt.Errorf("%s is a folder: give a file", to)}
	case !force:
		return refusedError{fmt.Errorf("%s exists already: use --force to replace it, or another name", to)}
	}
	return nil
}

// copyStore writes the store to f, syncs it and closes it.
func (a *app) copyStore(ctx context.Context, c *client.Client, f *os.File) (size int64, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	m := a.meter(mebibytes)
	defer m.end()
	size, err = c.Backup(ctx, io.MultiWriter(f, &copied{meter: m}))
	if err != nil {
		return size, err
	}
	if err := f.Sync(); err != nil {
		return size, fmt.Errorf("sync the copy: %w", err)
	}
	return size, nil
}

// syncFolder makes a new name durable. It ignores the error of systems on which a folder cannot be synced.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync the folder of the copy: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
