//go:build !linux

package executor

import (
	"context"
	"os"
	"syscall"
)

// Only Linux lets a process adopt orphans: elsewhere a process that leaves the group of its command outlives it.

func adoptOrphans() error { return nil }

func reapOrphans(context.Context, *children) {}

func signalStrays(*os.Process, syscall.Signal) {}

func strays(*os.Process) []int { return nil }
