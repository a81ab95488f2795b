package executor

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"
	"unicode/utf8"

	"lessor"
	"lessor/internal/sentinel"
)

// FuzzFiles writes any bytes into each file by which a command, or anybody who can write to its folder, talks to the
// shim. The shim must not fail, and must send only values that the server accepts.
func FuzzFiles(f *testing.F) {
	names := append(updateNames(), checkpointName, askName, answersName, messagesName, instructionName)
	for i, text := range []string{
		`{"nonce":"1"}`, `{"nonce":"2","status":"waiting"}`, `{"nonce":"3","progress":0.5,"message":"half"}`,
		`{"step":1}`, `{"question":{"text":"Where?","choices":["a","b"]},"expires_in_s":60}`, `{"Where?":"here"}`,
		`{"seq":1,"text":"x"}` + "\n" + `{"seq":2,`, `{"nonce":"4","stop":true,"grace_ms":-1}`,
	} {
		f.Add(uint8(i), []byte(text))
		f.Add(uint8(i), []byte("null\n"))
	}
	folder := makeJobFolder(f)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		name := names[int(which)%len(names)]
		if err := os.WriteFile(folder.Join(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = folder.Remove(name) }()
		s := &shim{
			folder: folder, log: slog.New(slog.DiscardHandler), stop: func(error) {},
			pulseNow: make(chan struct{}, 1), wake: make(chan struct{}, 1), ask: make(chan struct{}, 1),
		}
		s.killGrace.Store(int64(time.Second))
		s.readUpdates()
		s.readInstruction()
		s.readQuestion()
		b, _ := s.takeHeartbeat()
		if b.Progress != nil && !(*b.Progress >= 0 && *b.Progress <= 1) ||
			b.Message != nil && utf8.RuneCountInString(*b.Message) > lessor.MaxMessage ||
			b.Checkpoint != nil && !json.Valid(b.Checkpoint) || s.killGrace.Load() > int64(time.Second) {
			t.Errorf("%s with %q makes the shim send %+v, with a grace of %v", name, data, b,
				time.Duration(s.killGrace.Load()))
		}
		if name == answersName {
			checkAnswerKept(t, s)
		}
		if name == messagesName {
			checkMessagesKept(t, s, data)
		}
	})
}

// checkAnswerKept fails the test unless the command can read an answer that the shim has stored.
func checkAnswerKept(t *testing.T, s *shim) {
	t.Helper()
	err := s.keepAnswers(map[string]*string{"Where?": new("there")})
	answers, readErr := readAnswers(s.folder)
	if got := answers["Where?"]; err != nil || readErr != nil || got == nil || *got != "there" {
		t.Errorf("the answers are %v (%v, %v), want \"there\"", answers, err, readErr)
	}
}

// checkMessagesKept fails the test unless the complete lines of the file stay, and the next message is appended to
// them, or the file is set aside as it was, and the next message begins a new one.
func checkMessagesKept(t *testing.T, s *shim, before []byte) {
	t.Helper()
	if err := s.openMessages(); err != nil {
		t.Fatalf("the file %q cannot be opened: %v", before, err)
	}
	whole := before[:bytes.LastIndexByte(before, '\n')+1]
	if aside, err := os.ReadFile(s.folder.Join(brokenMessagesName)); err == nil && bytes.Equal(aside, before) {
		whole = nil
	}
	_ = s.folder.Remove(brokenMessagesName)
	s.receive([]lessor.Message{{Seq: s.messages.last}, {Seq: s.messages.last + 1}})
	_ = s.messages.file.Close()
	after, err := os.ReadFile(s.folder.Join(messagesName))
	if lines, ok := bytes.CutPrefix(after, whole); err != nil || !ok || bytes.Count(lines, []byte("\n")) != 1 {
		t.Errorf("the file %q became %q (%v), want its complete lines and one more", before, after, err)
	}
}

// makeJobFolder returns the folder of a job, in memory where that is possible: the shim syncs the files that it writes,
// which takes long on a disk.
func makeJobFolder(t testing.TB) *sentinel.Folder {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	w, err := sentinel.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := w.MakeFolder(lessor.JobID{UUID: lessor.UUID{1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = folder.Close(), w.Close() })
	return folder
}
