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
	"sync"

	"lessor"
)

const (
	// pageSize is how many names are read at once: enough to keep every reader busy, little enough to begin early.
	pageSize = 512
	// maxFolders bounds what one scan holds in memory.
	maxFolders = 1 << 20
)

// ErrTooMany means that a workspace holds more folders than a scan reads.
var ErrTooMany = fmt.Errorf("more than %d folders in one workspace", maxFolders)

// Found is one file that a scan found.
type Found[T any] struct {
	// Folder is the name of the folder, which is the job's id unless Err says otherwise.
	Folder string
	JobID  lessor.JobID
	// Record is what the file says, if Err is nil.
	Record T
	// Err is an *InvalidError: reported, never obeyed.
	Err error
}

// Scanner scans all folders of a workspace repeatedly. It does not read unchanged files again. It is for one goroutine.
type Scanner[T any] struct {
	w     *Workspace
	form  form[T]
	known map[string]*look[T]
	scans int
}

// look is a file as it was seen.
type look[T any] struct {
	at    stamp
	found Found[T]
	scan  int // the last that saw it so
}

// Sentinels returns a scanner of sentinels.
func (w *Workspace) Sentinels() *Scanner[Sentinel] {
	return &Scanner[Sentinel]{w: w, form: sentinelFile, known: map[string]*look[Sentinel]{}}
}

// Exits returns a scanner of exit records.
func (w *Workspace) Exits() *Scanner[Exit] {
	return &Scanner[Exit]{w: w, form: exitFile, known: map[string]*look[Exit]{}}
}

// Scan returns the current files in no particular order; an unchanged file gives the same value as the last time. All
// goroutines that it starts have ended when it returns.
func (s *Scanner[T]) Scan(ctx context.Context) ([]*Found[T], error) {
	dir, err := s.w.openJobs()
	if err != nil {
		return nil, fmt.Errorf("scan workspace %s: %w", s.w.path, err)
	}
	defer func() { _ = dir.Close() }() // it was only read
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan []fs.DirEntry, runtime.GOMAXPROCS(0))
	looks := make(chan []*look[T], runtime.GOMAXPROCS(0))
	var names sync.WaitGroup
	names.Go(func() {
		defer close(pages)
		err = list(ctx, dir, pages)
	})
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for page := range pages {
				looks <- s.lookAt(dir, page)
			}
		})
	}
	names.Go(func() {
		readers.Wait()
		close(looks)
	})
	all := make([]*look[T], 0, len(s.known))
	for page := range looks {
		all = append(all, page...)
	}
	names.Wait()
	if err != nil {
		return nil, fmt.Errorf("scan workspace %s: %w", s.w.path, err)
	}
	return s.keep(all), nil
}

// keep remembers what a scan saw, and forgets the rest.
func (s *Scanner[T]) keep(all []*look[T]) []*Found[T] {
	s.scans++
	found := make([]*Found[T], len(all))
	for i, l := range all {
		if l.scan == 0 {
			s.known[l.found.Folder] = l
		}
		l.scan = s.scans
		found[i] = &l.found
	}
	if len(s.known) > len(all) {
		maps.DeleteFunc(s.known, func(_ string, l *look[T]) bool { return l.scan != s.scans })
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
			return ErrTooMany
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openJobs opens the folder of all jobs by its path: opened through the root, each entry would cost a system call more.
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

func (s *Scanner[T]) lookAt(dir *os.File, page []fs.DirEntry) []*look[T] {
	looks := make([]*look[T], 0, len(page))
	for _, entry := range page {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // on its way out, or not ours
		}
		if l := s.lookInto(dir, entry); l != nil {
			looks = append(looks, l)
		}
	}
	return looks
}

// lookInto looks for the file in one folder. A folder without it is nothing to report.
func (s *Scanner[T]) lookInto(dir *os.File, entry fs.DirEntry) *look[T] {
	name := entry.Name()
	refused := func(err error) *look[T] { return &look[T]{found: Found[T]{Folder: name, Err: err}} }
	if entry.Type()&fs.ModeSymlink != 0 {
		return refused(invalid(Symlink, "the folder is a link"))
	}
	if !entry.IsDir() {
		return nil
	}
	// Not through the workspace's root, which costs twice as much: what this says is only compared.
	at, err := stampIn(dir, name+"/"+s.form.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refused(unreadable(err))
	}
	if l := s.known[name]; l != nil && l.at == at {
		return l
	}
	id, ok := parseFolder(name)
	if !ok {
		return refused(invalid(IllFormedID, "the folder's name is no job's id"))
	}
	l, err := s.readIn(id, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it ended between the two looks
	}
	return l
}

// readIn reads the file in the folder of one job.
func (s *Scanner[T]) readIn(id lessor.JobID, at stamp) (*look[T], error) {
	l := &look[T]{at: at, found: Found[T]{Folder: id.String(), JobID: id}}
	f, err := s.w.Folder(id)
	if err == nil {
		l.found.Record, l.at, err = read(f, s.form)
		_ = f.Close() // it was only read
	}
	if bad, ok := errors.AsType[*InvalidError](err); ok && bad.Reason == Unreadable {
		l.at = stamp{} // the next look may read it, though it is unchanged
	}
	l.found.Err = err
	return l, err
}

// parseFolder reads a folder's name. Only the form that we write is a job's: another spelling of the same id would be a
// second folder of one job.
func parseFolder(name string) (lessor.JobID, bool) {
	u, err := lessor.ParseUUID(name)
	return lessor.JobID{UUID: u}, err == nil && u.String() == name
}
