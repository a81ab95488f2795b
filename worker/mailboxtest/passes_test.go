package mailboxtest_test

import (
	"flag"
	"testing"
)

// passes runs a test without an outer one, as an example must. It is quiet also under -v: the output of an example is
// compared.
func passes(test func(t *testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	defer func() { _ = verbose.Set(was) }()
	if verbose.Set("false") != nil {
		return false
	}
	all := func(_, _ string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestMailbox", F: test}})
}
