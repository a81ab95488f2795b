package config

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "250ms": 250 * time.Millisecond, "90s": 90 * time.Second, "2m": 2 * time.Minute,
		"7d": 168 * time.Hour, "1h30m": 90 * time.Minute,
		"1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond,
		"106751d":     106751 * 24 * time.Hour, "007s": 7 * time.Second,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s", text, got, err, want)
		}
		if back, err := ParseDuration(FormatDuration(got)); err != nil || back != got {
			t.Errorf("%q is printed as %q", text, FormatDuration(got))
		}
	}
	for _, text := range []string{
		"", "1", "s", "-1s", "+1s", "1.5s", "1 s", "1us", "1ns", "1w", "30m1h", "1s1s", "106752d",
		"99999999999999999999s", "1h30", "h1", "1S", "1sm", "9223372036854775807ms",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %s, want it refused", text, got)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m": 60 * time.Second, "7d": 168 * time.Hour, "1h30m": 90 * time.Minute,
		"1s500ms": 1500 * time.Millisecond,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0B": 0, "1B": 1, "256KiB": 256 << 10, "16MiB": 16 << 20, "3GiB": 3 << 30, "8589934591GiB": 8589934591 << 30,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		} else if got.String() != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
	for _, text := range []string{
		"", "B", "1", "1KB", "1kib", "-1B", "1.5KiB", "8589934592GiB", "99999999999999999999B", "KiB", "1 KiB",
	} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want it refused", text, got)
		}
	}
}
