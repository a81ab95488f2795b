package sentinel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lessor"
)

// The names of files in a workspace and in a job's folder.
const (
	idName       = ".lessor-workspace"
	jobsName     = "jobs"
	sentinelName = ".sentinel.json"
	exitName     = ".exit.json"
	lockName     = ".lock"
	stopName     = ".stop"

	// tempPrefix begins the name of a file that is being written: a dot before a name that begins with one.
	tempPrefix = ".."
	// gonePrefix begins the name of a folder that is being removed.
	gonePrefix = ".gone-"
)

// maxID is the longest workspace id that the API accepts.
const maxID = 200

// Workspace is a folder that holds one folder per job. It is safe for concurrent use.
type Workspace struct {
	path string
	id   string
	jobs *os.Root
}

// Open opens the workspace at path, and creates it if there is none. The caller closes it.
func Open(path string) (*Workspace, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{path: path}
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", path, err)
	}
	return w, nil
}

func (w *Workspace) open() error {
	if err := os.MkdirAll(w.path, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written through the handle itself
	if w.id, err = identify(root); err != nil {
		return err
	}
	if err := root.Mkdir(jobsName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	w.jobs, err = openFolder(root, jobsName)
	return err
}

// identify returns the workspace's id, and creates it if there is none. A lock on the folder lets only one of several
// processes do so.
func identify(root *os.Root) (string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }() // closing it releases the lock
	if _, err := lock(dir, false, true); err != nil {
		return "", fmt.Errorf("lock: %w", err)
	}
	data, _, err := readFile(root, idName, maxID)
	if errors.Is(err, fs.ErrNotExist) {
		id := rand.Text()
		return id, replaceFile(root, idName, []byte(id+"\n"))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", idName, err)
	}
	id := strings.TrimSpace(string(data))
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s holds no id; if nothing runs here, remove the file", idName)
	}
	return id, nil
}

// ID returns the id of the workspace, which is part of the lease requests for jobs that run here.
func (w *Workspace) ID() string { return w.id }

// Path returns the absolute path of the workspace.
func (w *Workspace) Path() string { return w.path }

// Close closes the workspace. Open folders stay open.
func (w *Workspace) Close() error { return w.jobs.Close() }

// Folder opens the folder of a job. The error is fs.ErrNotExist, or an *InvalidError for what is no folder of ours.
func (w *Workspace) Folder(id lessor.JobID) (*Folder, error) {
	root, err := openFolder(w.jobs, id.String())
	if err != nil {
		return nil, err
	}
	return &Folder{id: id, path: filepath.Join(w.path, jobsName, id.String()), root: root}, nil
}

// OpenFolder opens the folder of a job by its path, for a process that runs in it and needs no workspace.
func OpenFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	id, ok := parseFolder(filepath.Base(path))
	if !ok {
		return nil, invalid(IllFormedID, "%s is no job's folder", path)
	}
	jobs, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = jobs.Close() }() // the folder stays open
	root, err := openFolder(jobs, id.String())
	if err != nil {
		return nil, err
	}
	return &Folder{id: id, path: path, root: root}, nil
}

// MakeFolder opens the folder of a job, and creates it if there is none.
func (w *Workspace) MakeFolder(id lessor.JobID) (*Folder, error) {
	if err := w.jobs.Mkdir(id.String(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make folder of job %s: %w", id, err)
	}
	return w.Folder(id)
}

// openFolder opens a folder in root. A link to a folder is an error.
func openFolder(root *os.Root, name string) (*os.Root, error) {
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, unreadable(err)
	}
	if !seen.IsDir() {
		kind := kindOf(seen.Mode())
		if kind == "" {
			kind = Unreadable
		}
		return nil, invalid(kind, "%s is not a folder", name)
	}
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, unreadable(err)
	}
	info, err := sub.Stat(".")
	if err == nil && !os.SameFile(seen, info) {
		err = invalid(Unreadable, "%s was replaced while it was opened", name)
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// Remove removes the folder of a job with its content; it does not follow links. It renames the folder first, so that
// no reader sees half of it and a new attempt can create its own. A missing folder is no error.
func (w *Workspace) Remove(id lessor.JobID) error {
	gone := gonePrefix + id.String() + "-" + rand.Text()
	err := w.jobs.Rename(id.String(), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = w.jobs.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("remove folder of job %s: %w", id, err)
	}
	return nil
}

// Jobs returns the jobs that have a folder, in no order.
func (w *Workspace) Jobs() ([]lessor.JobID, error) {
	names, err := w.names()
	jobs := make([]lessor.JobID, 0, len(names))
	for _, name := range names {
		if id, ok := parseFolder(name); ok {
			jobs = append(jobs, id)
		}
	}
	return jobs, err
}

// Tidy removes what interrupted removals left behind.
func (w *Workspace) Tidy() error {
	names, err := w.names()
	for _, name := range names {
		if strings.HasPrefix(name, gonePrefix) {
			err = errors.Join(err, w.jobs.RemoveAll(name))
		}
	}
	return err
}

func (w *Workspace) names() ([]string, error) {
	dir, err := w.jobs.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, err := dir.Readdirnames(maxFolders)
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	return names, err
}

// probeSize is the space that the files of a small job need.
const probeSize = 64 << 10

// Probe returns an error if the files of a job cannot be written now. It writes as much as a small job needs and
// removes it again.
func (w *Workspace) Probe() error {
	f, err := os.CreateTemp(w.path, ".probe-*")
	if err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	_, err = f.Write(make([]byte, probeSize))
	if err == nil {
		err = f.Sync() // some file systems find out only then
	}
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("write to the workspace: %w", err)
	}
	return nil
}
