package memory_test

import (
	"testing"

	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
	"lessor/internal/store/storetest"
)

// fresh opens stores of one new database.
func fresh(t *testing.T) func() scheduler.Store {
	db := memory.New(memory.Options{})
	return func() scheduler.Store { return db.Open(t.Name()) }
}

func TestStore(t *testing.T) { storetest.Run(t, fresh) }

func TestStoreShared(t *testing.T) { storetest.RunShared(t, fresh) }
