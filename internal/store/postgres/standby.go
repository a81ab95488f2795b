package postgres

import (
	"fmt"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// A commit waits for the synchronous standbys, if there are any. Whoever cancels the waiting (a cancel request, an administrator, a
// shutdown) has the server commit on its own: it answers COMMIT, with a warning, and a standby that is promoted then knows nothing of it.
// So we cancel no commit, and one with a warning counts as one whose answer was lost: it is settled by a later commit that
// did reach the standbys, since these get everything in order.

// warned is the fault of a commit that came with a warning, nil if it came without: whatever it says, the commit may be on this server alone.
func warned(c *wire.Conn) error {
	if c.Warning() == "" {
		return nil
	}
	return fmt.Errorf("commit: %w: the server warned: %s", scheduler.ErrUnreachable, c.Warning())
}
