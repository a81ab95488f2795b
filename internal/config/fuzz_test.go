package config

import "testing"

// FuzzFile looks for files that break the reader, or that it accepts with a key that is not in the table.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		whole, "lease:\n  ttl: 1s\n", "a: &b 1\nc: *b", "lease: {ttl: [1, 2]}", "? x\n: y", "- 1", "listen: |\n  x",
		"\t", "a:\n b\n  - c: {",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := parseFile("f.yaml", data)
		if err != nil {
			return
		}
		c := Default()
		for _, s := range settings {
			_ = s.key.set(&c, s.text) // may refuse, must not panic
		}
	})
}

// FuzzDuration checks that a duration can be read back as it was written.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"0", "1h30m", "7d", "250ms", "1", "106752d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if back, err := ParseDuration(FormatDuration(d)); err != nil || back != d {
			t.Errorf("%q is %s, printed as %q, read back as %s (%v)", s, d, FormatDuration(d), back, err)
		}
	})
}
