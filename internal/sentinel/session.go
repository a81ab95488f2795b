package sentinel

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"lessor"
)

// SessionOf returns the session of a job: the session_id of its payload if that can begin the name of a file, else the
// id of the job. The files of a session lie in the job's folder and are named {session}.*.
func SessionOf(id lessor.JobID, payload json.RawMessage) string {
	var p struct {
		SessionID any `json:"session_id"`
	}
	if err := json.Unmarshal(payload, &p); err == nil {
		if s, ok := p.SessionID.(string); ok && isSessionID(s) {
			return s
		}
	}
	return id.String()
}

// isSessionID reports whether s can begin the name of a file: 1 to 200 letters, digits and ._:@-, not
// beginning with a dot.
func isSessionID(s string) bool {
	if s == "" || len(s) > maxSession || s[0] == '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:@-", r)
	})
}

// HasSessionData reports whether a plain file of a session lies in the folder.
func (f *Folder) HasSessionData(session string) (bool, error) {
	names, err := f.sessionFiles(session)
	return len(names) > 0, err
}

// sessionFiles returns the names of the plain files of a session.
func (f *Folder) sessionFiles(session string) (names []string, err error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	for {
		page, err := dir.ReadDir(pageSize)
		for _, entry := range page {
			if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), session+".") {
				names = append(names, entry.Name())
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, err
		}
	}
}

// Limits of the session files that CopySession copies.
const (
	maxSessionFiles = 1000
	maxSessionBytes = 1 << 30
)

// CopySession copies the files of sessions from a folder into a new folder of job to, and returns how many there were.
// sessions gives each session its new name. Files over the limits are an *InvalidError, and nothing is copied. The new
// folder appears whole; without files it does not appear.
func (w *Workspace) CopySession(from *Folder, to lessor.JobID, sessions map[string]string) (int, error) {
	renamed := map[string]string{}
	for session, next := range sessions {
		names, err := from.sessionFiles(session)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			renamed[name] = next + strings.TrimPrefix(name, session)
		}
	}
	switch {
	case len(renamed) == 0:
		return 0, nil
	case len(renamed) > maxSessionFiles:
		return 0, invalid(TooLarge, "the session has %d files, at most %d are copied", len(renamed), maxSessionFiles)
	}
	part := gonePrefix + to.String() + "-" + rand.Text() // Tidy removes it if we are killed
	err := w.jobs.Mkdir(part, 0o700)
	if err == nil {
		err = w.copyInto(part, from, renamed)
	}
	if err == nil {
		err = w.jobs.Rename(part, to.String())
	}
	if err != nil {
		return 0, errors.Join(err, w.jobs.RemoveAll(part))
	}
	return len(renamed), nil
}

func (w *Workspace) copyInto(part string, from *Folder, renamed map[string]string) error {
	root, err := openFolder(w.jobs, part)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // every file is synced
	left := int64(maxSessionBytes)
	for name, next := range renamed {
		n, err := copyFile(from.root, name, root, next, left)
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		left -= n
	}
	return nil
}

// copyFile copies a plain file of at most limit bytes, and returns its size.
func copyFile(from *os.Root, name string, to *os.Root, next string, limit int64) (n int64, err error) {
	seen, err := from.Lstat(name)
	if err != nil {
		return 0, err
	}
	if err := plain(seen, limit); err != nil {
		return 0, err
	}
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // it was only read
	if info, err := in.Stat(); err != nil || !os.SameFile(seen, info) {
		return 0, errors.Join(err, errors.New("it was replaced while it was opened"))
	}
	out, err := to.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, limit+1))
	if err == nil && n > limit {
		err = invalid(TooLarge, "it grew over %d bytes", limit)
	}
	return n, errors.Join(err, out.Sync(), out.Close())
}
