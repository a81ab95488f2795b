// Command planted proves that the tests catch known faults. Each file faults/*.patch breaks one promise; its header
// says which, and names the tests of `make test` that must fail with it:
//
//	Fault: what the program does wrong
//	Promise: P1
//	Test: ./internal/scheduler TestAnswersAfterCommit
//
//	diff --git a/… b/…
//
// The program copies the tree to a temporary folder, runs all named tests there as they are, and then with each fault,
// one at a time. It prints which test caught which fault, and fails if a test fails without a fault, if a fault is not
// caught, or if a patch does not apply any more. Arguments name the faults to plant; without any it plants all.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	faults, err := readFaults(filepath.Join("planted", "faults"))
	if err != nil {
		return fmt.Errorf("read the faults (run this from the root of the repository): %w", err)
	}
	if len(names) > 0 {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	if len(faults) == 0 {
		return errors.New("there is no such fault")
	}
	root, err := copyTree(ctx)
	if err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }() // it is in the folder for temporary files
	tree := tree{root}
	if err := tree.clean(ctx, faults); err != nil {
		return err
	}
	return tree.plantAll(ctx, faults)
}

// plantAll plants each fault and prints the table.
func (t tree) plantAll(ctx context.Context, faults []fault) error {
	caught, start := 0, time.Now()
	for _, f := range faults {
		began := time.Now()
		by, err := t.plant(ctx, f)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			caught++
		} else {
			by = "NOT CAUGHT: " + err.Error()
		}
		fmt.Printf("%-6s  %-38s  %3.0f s  %s\n", f.promise, f.name, time.Since(began).Seconds(), by)
	}
	fmt.Printf("%d of %d faults were caught, in %.0f s\n", caught, len(faults), time.Since(start).Seconds())
	if caught < len(faults) {
		return errors.New("a fault that no test catches means that a test is missing")
	}
	return nil
}

// shown is how much of the output of a test is shown: its end says what is wrong.
const shown = 2000

// clean runs all named tests without a fault.
func (t tree) clean(ctx context.Context, faults []fault) error {
	byPackage := map[string][]string{}
	for _, f := range faults {
		for _, c := range f.tests {
			byPackage[c.pkg] = append(byPackage[c.pkg], c.names...)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		names := slices.Compact(slices.Sorted(slices.Values(byPackage[pkg])))
		failed, out, err := t.test(ctx, catcher{pkg, names})
		switch {
		case err != nil:
			return err
		case failed != "":
			return fmt.Errorf("%s fails without a fault:\n%s", failed, out[max(0, len(out)-shown):])
		}
	}
	return nil
}
