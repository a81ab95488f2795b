package sentinel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// ErrTooMany says that a workspace holds more folders than a scan looks at.
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

// Scanner looks at all folders of a workspace, again and again. A file that has not changed since the last look is not
// read again. It is for one goroutine.
type Scanner[T any] struct {
	w     *Workspace
	form  form[T]
	known map[string]look[T]
}

// look is a file as it was seen.
type look[T any] struct {
	at    stamp
	found Found[T]
}

// Sentinels returns a scanner of sentinels.
func (w *Workspace) Sentinels() *Scanner[Sentinel] {
	return &Scanner[Sentinel]{w: w, form: sentinelFile}
}

// Exits returns a scanner of exit records.
func (w *Workspace) Exits() *Scanner[Exit] { return &Scanner[Exit]{w: w, form: exitFile} }

// Scan returns every file there is now, in no order. What it starts has ended when it returns.
func (s *Scanner[T]) Scan(ctx context.Context) ([]Found[T], error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan []fs.DirEntry, runtime.GOMAXPROCS(0))
	looks := make(chan []look[T], runtime.GOMAXPROCS(0))
	var names sync.WaitGroup
	var listErr error
	names.Go(func() {
		defer close(pages)
		listErr = s.list(ctx, pages)
	})
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for page := range pages {
				looks <- s.lookAt(page)
			}
		})
	}
	names.Go(func() {
		readers.Wait()
		close(looks)
	})
	known := make(map[string]look[T], len(s.known))
	found := make([]Found[T], 0, len(s.known))
	for page := range looks {
		for _, l := range page {
			known[l.found.Folder] = l
			found = append(found, l.found)
		}
	}
	names.Wait()
	if listErr != nil {
		return nil, fmt.Errorf("scan workspace %s: %w", s.w.path, listErr)
	}
	s.known = known
	return found, nil
}

// list sends the entries of the workspace in pages.
func (s *Scanner[T]) list(ctx context.Context, pages chan<- []fs.DirEntry) error {
	dir, err := s.w.openJobs()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only read
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

func (s *Scanner[T]) lookAt(page []fs.DirEntry) []look[T] {
	looks := make([]look[T], 0, len(page))
	for _, entry := range page {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // on its way out, or not ours
		}
		if l, ok := s.lookInto(entry); ok {
			looks = append(looks, l)
		}
	}
	return looks
}

// lookInto looks for the file in one folder. A folder without it is nothing to report.
func (s *Scanner[T]) lookInto(entry fs.DirEntry) (look[T], bool) {
	name := entry.Name()
	refused := func(err error) (look[T], bool) {
		return look[T]{found: Found[T]{Folder: name, Err: err}}, true
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		return refused(invalid(Symlink, "the folder is a link"))
	}
	if !entry.IsDir() {
		return look[T]{}, false
	}
	// By its path, which costs half: what this says is only compared. Reading goes through the workspace's root.
	info, err := os.Lstat(s.w.path + "/" + jobsName + "/" + name + "/" + s.form.name)
	if errors.Is(err, fs.ErrNotExist) {
		return look[T]{}, false
	}
	if err != nil {
		return refused(unreadable(err))
	}
	id, ok := parseFolder(name)
	if !ok {
		return refused(invalid(IllFormedID, "the folder's name is no job's id"))
	}
	if l, ok := s.known[name]; ok && l.at == stampOf(info) {
		return l, true
	}
	l, err := s.readIn(id, info)
	if errors.Is(err, fs.ErrNotExist) {
		return look[T]{}, false // it ended between the two looks
	}
	return l, true
}

// readIn reads the file in the folder of one job.
func (s *Scanner[T]) readIn(id lessor.JobID, info os.FileInfo) (look[T], error) {
	l := look[T]{at: stampOf(info), found: Found[T]{Folder: id.String(), JobID: id}}
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
