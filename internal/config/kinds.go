package config

import (
	"fmt"
	"slices"
	"time"
)

func secret(k Key) Key       { k.Secret = true; return k }
func hidePassword(k Key) Key { k.url = true; return k }

func text[T ~string](name, allowed string, field func(*Config) *T, ok func(T) bool) Key {
	return Key{Name: name, Allowed: allowed, field: anyField(field), ok: func(c *Config) bool { return ok(*field(c)) }}
}

func span(name string, field func(*Config) *time.Duration, lo, hi time.Duration) Key {
	return Key{
		Name: name, Allowed: FormatDuration(lo) + " to " + FormatDuration(hi), field: anyField(field),
		ok: func(c *Config) bool { return lo <= *field(c) && *field(c) <= hi },
	}
}

func number(name string, field func(*Config) *int, lo, hi int) Key {
	return Key{
		Name: name, Allowed: fmt.Sprintf("%d to %d", lo, hi), field: anyField(field),
		ok: func(c *Config) bool { return lo <= *field(c) && *field(c) <= hi },
	}
}

func size(name string, field func(*Config) *Size, lo, hi Size) Key {
	return Key{
		Name: name, Allowed: fmt.Sprintf("%s to %s", lo, hi), field: anyField(field),
		ok: func(c *Config) bool { return lo <= *field(c) && *field(c) <= hi },
	}
}

func truth(name string, field func(*Config) *bool) Key {
	return Key{Name: name, Allowed: "true or false", field: anyField(field), ok: func(*Config) bool { return true }}
}

func busy(name string, field func(*Config) *Busy) Key {
	return Key{Name: name, Allowed: "host, or 0 to 10", field: anyField(field), ok: func(c *Config) bool {
		return !field(c).Set || 0 <= field(c).Rating && field(c).Rating <= 10
	}}
}

func anyField[T any](field func(*Config) *T) func(*Config) any {
	return func(c *Config) any { return field(c) }
}

// percent is one share of the units for each busy rating.
func percent(name string, field func(*Config) *[]int) Key {
	return Key{Name: name, Allowed: "11 numbers 0 to 100, for the ratings 0 to 10", field: anyField(field), ok: func(c *Config) bool {
		return len(*field(c)) == 11 && !slices.ContainsFunc(*field(c), func(n int) bool { return n < 0 || n > 100 })
	}}
}

// points is a rising list of thresholds: the n-th that is reached gives n points.
func points(name string, field func(*Config) *[]float64, hi float64) Key {
	allowed := fmt.Sprintf("up to 10 rising numbers 0 to %.0f", hi)
	return Key{Name: name, Allowed: allowed, field: anyField(field), ok: func(c *Config) bool {
		last := -1.0
		for _, n := range *field(c) {
			if !(n > last && n <= hi) || n < 0 { // also refuses NaN
				return false
			}
			last = n
		}
		return len(*field(c)) <= 10
	}}
}

func hosts(name string, field func(*Config) *[]string) Key {
	return Key{Name: name, Allowed: "up to 100 host names or addresses without port", field: anyField(field), ok: func(c *Config) bool {
		return len(*field(c)) <= maxHosts && !slices.ContainsFunc(*field(c), func(h string) bool { return !isHost(h) })
	}}
}

func networks(name string, field func(*Config) *[]string) Key {
	return Key{Name: name, Allowed: "up to 100 addresses, or networks like 10.0.0.0/8", field: anyField(field), ok: func(c *Config) bool {
		return len(*field(c)) <= maxHosts && !slices.ContainsFunc(*field(c), func(s string) bool { _, ok := parseNetwork(s); return !ok })
	}}
}
