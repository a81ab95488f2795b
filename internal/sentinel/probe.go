package sentinel

import (
	"errors"
	"fmt"
	"os"
)

// probeSize is what the files of a small job need.
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
