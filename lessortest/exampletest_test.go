package lessortest_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// exampleT stands for the test that an example does not have.
type exampleT struct {
	testing.TB
	dir      string
	cleanups []func()
}

func newExampleT() *exampleT {
	dir, err := os.MkdirTemp("", "lessortest-*")
	if err != nil {
		panic(err)
	}
	t := &exampleT{dir: dir}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return t
}

func (t *exampleT) Helper()                           {}
func (t *exampleT) TempDir() string                   { return t.dir }
func (t *exampleT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// end runs what was left to the end of the test, the last first.
func (t *exampleT) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}
