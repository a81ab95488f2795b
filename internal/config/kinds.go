package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

func secret(k Key) Key       { k.Secret = true; return k }
func hidePassword(k Key) Key { k.url = true; return k }

func text[T ~string](name, allowed string, field func(*Config) *T, ok func(T) bool) Key {
	return Key{Name: name, Allowed: allowed, field: anyField(field), ok: func(c *Config) bool { return ok(*field(c)) }}
}

// ranged is a key whose value lies between lo and hi.
func ranged[T cmp.Ordered](name string, format func(T) string, field func(*Config) *T, lo, hi T) Key {
	return Key{
		Name: name, Allowed: format(lo) + " to " + format(hi), field: anyField(field),
		ok: func(c *Config) bool { return lo <= *field(c) && *field(c) <= hi },
	}
}

func span(name string, field func(*Config) *time.Duration, lo, hi time.Duration) Key {
	return ranged(name, FormatDuration, field, lo, hi)
}

func number(name string, field func(*Config) *int, lo, hi int) Key {
	return ranged(name, strconv.Itoa, field, lo, hi)
}

func size(name string, field func(*Config) *Size, lo, hi Size) Key {
	return ranged(name, Size.String, field, lo, hi)
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

// listed is a key whose value is a list. One check is for each item, one for their number.
func listed[T any](name, allowed string, field func(*Config) *[]T, item func(T) bool, count func(int) bool) Key {
	return Key{Name: name, Allowed: allowed, field: anyField(field), ok: func(c *Config) bool {
		return count(len(*field(c))) && !slices.ContainsFunc(*field(c), func(v T) bool { return !item(v) })
	}}
}

// percent is the usable share of the units for each busy rating.
func percent(name string, field func(*Config) *[]int) Key {
	return listed(name, "11 numbers 0 to 100, for the ratings 0 to 10", field,
		func(n int) bool { return 0 <= n && n <= 100 }, func(count int) bool { return count == 11 })
}

// points is a rising list of thresholds; the n-th gives n points.
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
	return listed(name, "up to 100 host names or addresses without port", field, isHost, notTooMany)
}

func networks(name string, field func(*Config) *[]string) Key {
	return listed(name, "up to 100 addresses, or networks like 10.0.0.0/8", field, isNetwork, notTooMany)
}

func notTooMany(count int) bool { return count <= maxHosts }
