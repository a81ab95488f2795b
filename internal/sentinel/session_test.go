package sentinel

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestSessionDataIsAPlainFileOfTheSession(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	want := func(session string, want bool) {
		t.Helper()
		if got, err := f.HasSessionData(session); err != nil || got != want {
			t.Errorf("session data of %q: %v, %v; want %v", session, got, err, want)
		}
	}
	want("s-1", false)
	err := errors.Join(
		os.WriteFile(f.Join("s-10.jsonl"), nil, 0o600), os.WriteFile(f.Join("s-1"), nil, 0o600),
		os.Mkdir(f.Join("s-1.d"), 0o700), os.Symlink("s-1", f.Join("s-1.link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	want("s-1", false)
	want("s-10", true)
}

func TestSessionOfAJob(t *testing.T) {
	for payload, want := range map[string]string{
		`{"session_id":"s-1"}`:  "s-1",
		`{"session_id":"../x"}`: jobA.String(),
		`{"session_id":7}`:      jobA.String(),
		`{}`:                    jobA.String(),
	} {
		if got := SessionOf(jobA, []byte(payload)); got != want {
			t.Errorf("%s: %q, want %q", payload, got, want)
		}
	}
}

func TestCopySession(t *testing.T) {
	w := open(t)
	f := makeFolder(t, w, jobA)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(f.Join(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session := map[string]string{"s-1": "s-2", "other": "other"}
	if n, err := w.CopySession(f, jobB, session); n != 0 || err != nil {
		t.Errorf("without files: %d, %v", n, err)
	}
	write("s-1.jsonl", "one")
	write("s-1.tar.gz", "two")
	write("other.db", "three")
	write("s-10.jsonl", "another session's")
	if err := os.Symlink("s-10.jsonl", f.Join("s-1.link")); err != nil {
		t.Fatal(err)
	}
	if n, err := w.CopySession(f, jobB, session); n != 3 || err != nil {
		t.Fatalf("copied %d: %v", n, err)
	}
	got := map[string]string{}
	next := filepath.Join(w.Path(), "jobs", jobB.String())
	entries, err := os.ReadDir(next)
	for _, e := range entries {
		data, readErr := os.ReadFile(filepath.Join(next, e.Name()))
		err = errors.Join(err, readErr)
		got[e.Name()] = string(data)
	}
	want := map[string]string{"s-2.jsonl": "one", "s-2.tar.gz": "two", "other.db": "three"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("the new folder has %v, %v; want %v", got, err, want)
	}
}

func TestCopySessionIsBounded(t *testing.T) {
	for name, fill := range map[string]func(f *Folder) error{
		"too large": func(f *Folder) error {
			return errors.Join(os.WriteFile(f.Join("s.a"), nil, 0o600), os.Truncate(f.Join("s.a"), maxSessionBytes+1))
		},
		"too many": func(f *Folder) (err error) {
			for i := range maxSessionFiles + 1 {
				err = errors.Join(err, os.WriteFile(f.Join(fmt.Sprint("s.", i)), nil, 0o600))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			f := makeFolder(t, w, jobA)
			if err := fill(f); err != nil {
				t.Fatal(err)
			}
			_, err := w.CopySession(f, jobB, map[string]string{"s": "s"})
			if bad, ok := errors.AsType[*InvalidError](err); !ok || bad.Reason != TooLarge {
				t.Errorf("got %v", err)
			}
			if entries, err := os.ReadDir(filepath.Join(w.Path(), "jobs")); err != nil || len(entries) != 1 {
				t.Errorf("something was left behind: %v, %v", entries, err)
			}
		})
	}
}
