package sentinel

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lessor"
)

// hostile puts something at name that is not a sentinel of ours.
var hostile = []struct {
	name string
	want Reason
	put  func(t *testing.T, name string) error
}{
	{"link to a good one", Symlink, func(t *testing.T, name string) error { return os.Symlink(goodOne(t), name) }},
	{"link inside the workspace", Symlink, func(_ *testing.T, name string) error {
		return errors.Join(os.WriteFile(name+".real", good(jobA), 0o600), os.Symlink(filepath.Base(name)+".real", name))
	}},
	{"dangling link", Symlink, func(_ *testing.T, name string) error { return os.Symlink("nowhere", name) }},
	{"pipe", Pipe, func(_ *testing.T, name string) error { return syscall.Mkfifo(name, 0o600) }},
	{"socket", Socket, func(t *testing.T, name string) error {
		short := filepath.Join(shortDir(t), "s")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		return os.Rename(short, name)
	}},
	{"device", Device, func(t *testing.T, name string) error {
		err := syscall.Mknod(name, syscall.S_IFCHR|0o600, 1<<8|5) // /dev/zero: it never ends
		if errors.Is(err, syscall.EPERM) {
			t.Skip("making a device needs root")
		}
		return err
	}},
	{"folder", Directory, func(_ *testing.T, name string) error { return os.Mkdir(name, 0o700) }},
	{"hard link", HardLink, func(t *testing.T, name string) error { return os.Link(goodOne(t), name) }},
	{"huge", TooLarge, text(strings.Repeat(" ", maxSentinel) + "{}")},
	{"huge with holes", TooLarge, func(_ *testing.T, name string) error {
		return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<40))
	}},
	{"empty", Malformed, text("")},
	{"half", Malformed, text(string(good(jobA))[:60])},
	{"not an object", Malformed, text("[1]")},
	{"other object", Malformed, text(`{"name":"x"}`)},
	{"two objects", Malformed, text(string(good(jobA)) + string(good(jobA)))},
	{"nul bytes", Malformed, text(strings.Repeat("\x00", 200))},
	{"wrong type", Malformed, text(`{"jobId":"` + jobA.String() + `","status":"running","lastHeartbeat":5}`)},
	{"no time", Malformed, text(`{"jobId":"` + jobA.String() + `","status":"running"}`)},
	{
		"unknown status", Malformed,
		text(`{"jobId":"` + jobA.String() + `","status":"dead","lastHeartbeat":"2025-10-15T10:30:45Z"}`),
	},
	{
		"negative fence", Malformed,
		text(`{"jobId":"` + jobA.String() + `","status":"running","lastHeartbeat":"2025-10-15T10:30:45Z","fence":-1}`),
	},
	{"in the year 9999", Malformed, text(strings.Replace(string(good(jobA)), "2025", "9999", 1))},
	{"in the year 2200", Malformed, text(strings.Replace(string(good(jobA)), "2025-10", "2200-01", 1))},
	{"before 1970", Malformed, text(strings.Replace(string(good(jobA)), "2025", "1969", 1))},
	{
		"started in the year 2400", Malformed,
		text(strings.Replace(string(good(jobA)), "}", `,"startedAt":"2400-01-01T00:00:00Z"}`, 1)),
	},
	{"of another job", OtherJob, text(string(good(jobB)))},
	{
		"id with a path", IllFormedID,
		text(`{"jobId":"../../etc/passwd","status":"running","lastHeartbeat":"2025-10-15T10:30:45Z"}`),
	},
	{
		"session with a path", IllFormedID,
		text(`{"jobId":"` + jobA.String() +
			`","status":"running","lastHeartbeat":"2025-10-15T10:30:45Z","sessionId":"../x"}`),
	},
}

func text(s string) func(*testing.T, string) error {
	return func(_ *testing.T, name string) error { return os.WriteFile(name, []byte(s), 0o600) }
}

func good(id lessor.JobID) []byte {
	return []byte(`{"jobId":"` + id.String() + `","status":"running","lastHeartbeat":"2025-10-15T10:30:45Z"}`)
}

func goodOne(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "good")
	if err := os.WriteFile(name, good(jobA), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// shortDir is a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "s") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestHostileSentinelsAreRefused(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			f := makeFolder(t, w, jobA)
			if err := c.put(t, f.Join(".sentinel.json")); err != nil {
				t.Fatal(err)
			}
			_, err := f.Sentinel()
			wantReason(t, "read", err, c.want)
			scanner := w.Sentinels()
			for _, look := range []string{"first scan", "second scan"} {
				found, err := scanner.Scan(t.Context())
				if err != nil || len(found) != 1 || found[0].Folder != jobA.String() {
					t.Fatalf("%s: found %+v, %v", look, found, err)
				}
				wantReason(t, look, found[0].Err, c.want)
			}
		})
	}
}

func wantReason(t *testing.T, what string, err error, want Reason) {
	t.Helper()
	bad, ok := errors.AsType[*InvalidError](err)
	if !ok || bad.Reason != want {
		t.Errorf("%s: %v, want the reason %s", what, err, want)
	}
}

// TestLinksLeadNowhere links job folders, and the folder of all jobs, to good ones outside and inside.
func TestLinksLeadNowhere(t *testing.T) {
	outside := open(t)
	if err := makeFolder(t, outside, jobA).WriteSentinel(pulse(jobA, 1)); err != nil {
		t.Fatal(err)
	}
	w := open(t)
	if err := makeFolder(t, w, jobB).WriteSentinel(pulse(jobB, 1)); err != nil {
		t.Fatal(err)
	}
	jobs := filepath.Join(w.Path(), "jobs")
	inside := mustJob("0196a1b2-0000-7000-8000-00000000000c")
	if err := errors.Join(
		os.Symlink(filepath.Join(outside.Path(), "jobs", jobA.String()), filepath.Join(jobs, jobA.String())),
		os.Symlink(jobB.String(), filepath.Join(jobs, inside.String())),
	); err != nil {
		t.Fatal(err)
	}
	for _, id := range []lessor.JobID{jobA, inside} {
		_, err := w.Folder(id)
		wantReason(t, "open "+id.String(), err, Symlink)
		_, err = w.MakeFolder(id)
		wantReason(t, "make "+id.String(), err, Symlink)
	}
	found, err := w.Sentinels().Scan(t.Context())
	if err != nil || len(found) != 3 {
		t.Fatalf("found %+v, %v", found, err)
	}
	for _, one := range found {
		if one.Folder == jobB.String() {
			if one.Err != nil {
				t.Errorf("the good one: %v", one.Err)
			}
			continue
		}
		wantReason(t, one.Folder, one.Err, Symlink)
	}

	scanner := w.Sentinels()
	if err := errors.Join(os.Rename(jobs, jobs+"-away"),
		os.Symlink(filepath.Join(outside.Path(), "jobs"), jobs)); err != nil {
		t.Fatal(err)
	}
	if found, err := scanner.Scan(t.Context()); err == nil {
		t.Errorf("a folder of jobs that became a link was followed: %+v", found)
	}

	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(outside.Path(), "jobs"), filepath.Join(linked, "jobs")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(linked); err == nil {
		t.Error("a workspace whose jobs folder is a link was opened")
	}
}

func TestRemovalDoesNotFollowLinks(t *testing.T) {
	w := open(t)
	f := makeFolder(t, w, jobA)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(
		os.Mkdir(precious, 0o700),
		os.WriteFile(filepath.Join(precious, "file"), nil, 0o600),
		os.Symlink(precious, f.Join("link")),
		os.MkdirAll(f.Join("a/b/c"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(jobA); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(jobA); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
		t.Errorf("what the link led to: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(w.Path(), "jobs"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFoldersThatAreNoJobsAreReported(t *testing.T) {
	w := open(t)
	jobs := filepath.Join(w.Path(), "jobs")
	for _, name := range []string{"..%2f..", strings.ToUpper(jobA.String()), "x"} {
		if err := errors.Join(os.Mkdir(filepath.Join(jobs, name), 0o700),
			os.WriteFile(filepath.Join(jobs, name, ".sentinel.json"), good(jobA), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(jobs, "empty"), 0o700),
		os.WriteFile(filepath.Join(jobs, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	found, err := w.Sentinels().Scan(t.Context())
	if err != nil || len(found) != 2 { // names that begin with a dot are nobody's
		t.Fatalf("found %+v, %v", found, err)
	}
	for _, one := range found {
		wantReason(t, one.Folder, one.Err, IllFormedID)
	}
}
