package sentinel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"lessor"
	"lessor/internal/fault"
)

const (
	// pageSize is how many names are read at once: enough to keep every reader busy, and few enough to begin early.
	pageSize = 512
	// maxFolders bounds the memory of a scan.
	maxFolders = 1 << 20
)

// errTooMany means that a workspace holds more folders than a scan reads.
var errTooMany = fmt.Errorf("more than %d folders in one workspace", maxFolders)

// Found is one sentinel that a scan found.
type Found struct {
	// Folder is the name of the folder, which is the job's id unless Err says otherwise.
	Folder string
	JobID  lessor.JobID
	// Record is what the file says, if Err is nil.
	Record Sentinel
	// Err is an *InvalidError: reported, never obeyed.
	Err error
}

// Scanner scans all folders of a workspace repeatedly. It does not read unchanged files again. It is for one goroutine.
type Scanner struct {
	w     *Workspace
	known map[string]*seen
	scans int
}

// seen is a file as the last scan that read it saw it.
type seen struct {
	at    stamp
	found Found
	scan  int // the last scan that saw it so
}

// Sentinels returns a scanner of the workspace's sentinels.
func (w *Workspace) Sentinels() *Scanner { return &Scanner{w: w, known: map[string]*seen{}} }

// Scan returns the current files in no particular order; an unchanged file gives the same value as the last time. All
// goroutines that it starts have ended when it returns.
func (s *Scanner) Scan(ctx context.Context) ([]*Found, error) {
	dir, err := s.w.openJobs()
	if err != nil {
		return nil, fmt.Errorf("scan workspace %s: %w", s.w.path, err)
	}
	defer func() { _ = dir.Close() }() // it was only read
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan []fs.DirEntry, runtime.GOMAXPROCS(0))
	results := make(chan []*seen, runtime.GOMAXPROCS(0))
	var names fault.Group
	names.Go(func() {
		defer close(pages)
		err = list(ctx, dir, pages)
	})
	readers := fault.Group{Cancel: cancel}
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for page := range pages {
				results <- s.checkPage(dir, page)
			}
		})
	}
	names.Go(func() {
		defer close(results)
		readers.Wait()
	})
	all := make([]*seen, 0, len(s.known))
	for page := range results {
		all = append(all, page...)
	}
	names.Wait()
	if err != nil {
		return nil, fmt.Errorf("scan workspace %s: %w", s.w.path, err)
	}
	return s.keep(all), nil
}

// keep remembers what a scan saw and forgets the rest.
func (s *Scanner) keep(all []*seen) []*Found {
	s.scans++
	found := make([]*Found, len(all))
	for i, f := range all {
		if f.scan == 0 {
			s.known[f.found.Folder] = f
		}
		f.scan = s.scans
		found[i] = &f.found
	}
	if len(s.known) > len(all) {
		maps.DeleteFunc(s.known, func(_ string, f *seen) bool { return f.scan != s.scans })
	}
	return found
}

// list sends the entries of the workspace in pages.
func list(ctx context.Context, dir *os.File, pages chan<- []fs.DirEntry) error {
	for n := 0; ; n += pageSize {
		page, err := dir.ReadDir(pageSize)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n >= maxFolders {
			return errTooMany
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openJobs opens the folder of all jobs by its path: through the root, each entry would cost one more system call.
func (w *Workspace) openJobs() (*os.File, error) {
	dir, err := os.Open(filepath.Join(w.path, jobsName))
	if err != nil {
		return nil, err
	}
	is, err := dir.Stat()
	want, wantErr := w.jobs.Stat(".")
	if err = errors.Join(err, wantErr); err == nil && !os.SameFile(is, want) {
		err = errors.New("the folder of jobs was replaced")
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func (s *Scanner) checkPage(dir *os.File, page []fs.DirEntry) []*seen {
	all := make([]*seen, 0, len(page))
	for _, entry := range page {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // it is being removed, or is not ours
		}
		if f := s.check(dir, entry); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// check reads the sentinel of one folder, unless it is unchanged. It returns nil for a folder without one.
func (s *Scanner) check(dir *os.File, entry fs.DirEntry) *seen {
	name := entry.Name()
	refused := func(err error) *seen { return &seen{found: Found{Folder: name, Err: err}} }
	if entry.Type()&fs.ModeSymlink != 0 {
		return refused(invalid(Symlink, "the folder is a link"))
	}
	if !entry.IsDir() {
		return nil
	}
	// A path through the workspace's root would cost twice as much, and this stamp is only compared.
	at, err := stampIn(dir, name+"/"+sentinelName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refused(unreadable(err))
	}
	if f := s.known[name]; f != nil && f.at == at {
		return f
	}
	id, ok := parseFolder(name)
	if !ok {
		return refused(invalid(IllFormedID, "the folder's name is no job's id"))
	}
	now := &seen{at: at, found: Found{Folder: name, JobID: id}}
	f, err := s.w.Folder(id)
	if err == nil {
		now.found.Record, now.at, err = f.readSentinel()
		_ = f.Close() // it was only read
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the command has ended meanwhile
	}
	if bad, ok := errors.AsType[*InvalidError](err); ok && bad.Reason == Unreadable {
		now.at = stamp{} // the next scan reads it again, even if it is unchanged
	}
	now.found.Err = err
	return now
}

// parseFolder returns the job that a folder's name names. Only the form that we write counts: another spelling of the
// same id would be a second folder of one job.
func parseFolder(name string) (lessor.JobID, bool) {
	u, err := lessor.ParseUUID(name)
	return lessor.JobID{UUID: u}, err == nil && u.String() == name
}
