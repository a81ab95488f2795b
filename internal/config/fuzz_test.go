package config

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

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

// FuzzURL checks that a URL of a store or webhook, accepted or refused, is shown the same whatever its password is, and
// that a store which is accepted is a path or a URL.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"sqlite:/var/lib/lessor.db", "sqlite://x", "postgres://lessor:hunter22@db/lessor?sslmode=disable",
		"postgres:lessor:hunter22@db/lessor", "host=db user=lessor password=hunter22 dbname=lessor",
		"postgres://db/lessor?PassWord=hunter22&password=hunter22&sslpassword=hunter22", "postgres://a:b@h1,h2:5433/x",
		"https://hook:hunter22@example.org/alerts", "https://[::1]:1/x", "http://", "https://example.org/%zz",
		"//lessor:hunter22@db/lessor", "https://example.org/?access_token=hunter22", "postgres:///lessor?host=/run",
		"postgres://lessor:hunter22%40@db/", "lessor:hunter22@db/lessor",
	} {
		f.Add(seed)
	}
	word := regexp.MustCompile(`^[0-9A-Za-z]{4,}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := ParseStore(s); err == nil {
			if (at.Kind == SQLite) != strings.HasPrefix(s, "sqlite:") || at.Path+at.URL == "" {
				t.Errorf("%q is the store %+v", s, at)
			}
		}
		shown := MaskURL(s)
		u, err := url.Parse(s)
		if err != nil || u.Scheme == "" || u.Opaque != "" {
			if shown != masked && !strings.HasPrefix(s, "sqlite:") {
				t.Errorf("%q is no URL and is shown as %q", s, shown)
			}
			return
		}
		secrets := []string{}
		if password, set := u.User.Password(); set {
			secrets = append(secrets, password)
		}
		for name, values := range u.Query() {
			if secretWords.MatchString(name) {
				secrets = append(secrets, values...)
			}
		}
		for _, secret := range secrets {
			plain, err := url.QueryUnescape(s)
			if err != nil || !word.MatchString(secret) || strings.Count(s, secret) != 1 ||
				strings.Count(plain, secret) != 1 {
				continue // it may be there for another reason
			}
			if other := MaskURL(strings.Replace(s, secret, strings.Repeat("x", len(secret)), 1)); shown != other {
				t.Errorf("%q is shown as %q, and with another secret as %q", s, shown, other)
			}
		}
	})
}
