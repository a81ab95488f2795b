package sentinel

import (
	"errors"
	"syscall"
	"testing"
)

// TestLackOfFilesIsNoFaultOfTheFolder opens a folder while the process may open no more files. The error says so.
func TestLackOfFilesIsNoFaultOfTheFolder(t *testing.T) {
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	f, err := w.MakeFolder(jobA)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: usual.Max}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Folder(f.Job())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("the folder is opened with %v, want EMFILE", err)
	}
}
