package executor

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/sentinel"
)

// A command sends messages to its shim through these files, which are replaced as a whole. There are three, so that
// no message replaces another kind that was not read yet.
const (
	beatName     = ".beat"
	statusName   = ".status"
	progressName = ".progress"
)

func updateNames() []string { return []string{beatName, statusName, progressName} }

// maxUpdate bounds such a file: a message of 500 characters, escaped.
const maxUpdate = 16 << 10

// update is the content of such a file.
type update struct {
	// Nonce tells an update from an equal one before it.
	Nonce    string          `json:"nonce"`
	Status   sentinel.Status `json:"status,omitempty"`
	Progress *float64        `json:"progress,omitempty"`
	Message  *string         `json:"message,omitempty"`
}

// ErrNoJob means that the caller does not run inside a job.
var ErrNoJob = errors.New("LESSOR_PAYLOAD_FILE is not set: this is for use inside a job of `lessor work`")

// Inside opens the folder of the job in which the caller runs; getenv reads the environment.
func Inside(getenv func(string) string) (*sentinel.Folder, error) {
	payload := getenv("LESSOR_PAYLOAD_FILE")
	if payload == "" {
		return nil, ErrNoJob
	}
	f, err := sentinel.OpenFolder(filepath.Dir(payload))
	if err != nil {
		return nil, fmt.Errorf("open the job's folder: %w", err)
	}
	return f, nil
}

// SendBeat reports progress, and the status of the work if status is not empty.
func SendBeat(f *sentinel.Folder, status sentinel.Status) error {
	if status == "" {
		return send(f, beatName, update{})
	}
	if !slices.Contains(sentinel.Statuses(), status) {
		return fmt.Errorf("status %q is none of %q", status, sentinel.Statuses())
	}
	return send(f, statusName, update{Status: status})
}

// SendProgress reports how much of the work is done, 0 to 1, and a message if it is not empty. It also counts as a
// beat.
func SendProgress(f *sentinel.Folder, progress float64, message string) error {
	g := update{Progress: &progress}
	if message != "" {
		g.Message = &message
	}
	if err := g.check(); err != nil {
		return err
	}
	return send(f, progressName, g)
}

// check returns an error if the server would refuse the update.
func (g update) check() error {
	if g.Progress != nil && !(*g.Progress >= 0 && *g.Progress <= 1) { // also not a number
		return errors.New("progress is a number from 0 to 1")
	}
	if g.Message != nil && (len([]rune(*g.Message)) > lessor.MaxMessage || strings.ContainsRune(*g.Message, 0)) {
		return fmt.Errorf("a message has at most %d characters, and no NUL", lessor.MaxMessage)
	}
	return nil
}

func send(f *sentinel.Folder, name string, g update) error {
	g.Nonce = rand.Text()
	data, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return f.WriteFile(name, data)
}
