package config

import (
	"errors"
	"fmt"
)

// Validate returns an error that names all values that are out of range or contradict each other.
func (c Config) Validate() error {
	return validate(&c, func(string) string { return "set in the program" }, nil)
}

// order says that one key must be less than another.
type order struct {
	low, high string
	equal     bool // they may be equal
}

// orders are the pairs of keys that depend on each other.
var orders = []order{
	{low: "sentinel.interval", high: "sentinel.stale_after"},
	{low: "sentinel.stale_after", high: "sentinel.dead_after"},
	{low: "recovery.poll", high: "recovery.watch"},
	{low: "jobs.backoff_first", high: "jobs.backoff_max", equal: true},
	{low: "capacity.reserve_units", high: "capacity.total_units"},
}

// validate checks all keys but those to skip.
func validate(c *Config, source func(key string) string, skip map[string]bool) error {
	var errs []error
	for _, k := range Keys() {
		if !skip[k.Name] && !k.ok(c) {
			errs = append(errs, fmt.Errorf("%s: %q (%s) is not allowed: allowed is %s",
				k.Name, k.shown(k.value(c)), source(k.Name), k.Allowed))
		}
	}
	for _, o := range orders {
		low, high := key(o.low), key(o.high)
		a, b := low.amount(c), high.amount(c)
		if a < b || o.equal && a == b || skip[o.low] || skip[o.high] {
			continue
		}
		must := "must be less than"
		if o.equal {
			must = "must be at most"
		}
		errs = append(errs, fmt.Errorf("%s: %q (%s) %s %s, which is %q (%s)",
			o.low, low.value(c), source(o.low), must, o.high, high.value(c), source(o.high)))
	}
	return errors.Join(errs...)
}
