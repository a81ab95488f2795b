package config

import (
	"reflect"
	"strings"
	"testing"
)

// bounds has, for every key, allowed values at each bound and refused values just beyond it.
var bounds = map[string]struct{ good, bad []string }{
	"listen": {
		[]string{"127.0.0.1:0", ":5377", "[::1]:65535", "localhost:80", "0.0.0.0:5377"},
		[]string{
			"", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", "::1:80", "a b:80", "http://x:80",
		},
	},
	"data":      {[]string{"x", "/tmp/ü"}, []string{"", "a\x00b", strings.Repeat("x", 4097)}},
	"workspace": {[]string{"x", strings.Repeat("x", 4096)}, []string{"a\x00b", strings.Repeat("x", 4097)}},
	"store": {
		[]string{"sqlite:x.db", "sqlite:/abs/x.db", "postgres://u@h/db", "postgresql://u:p@h:5432/db?sslmode=disable"},
		[]string{
			"sqlite:", "sqlite://x.db", "sqlite:x?mode=ro", "x.db", "mysql://u@h/db", "postgres://u@h",
			"postgres://u@h/", "postgres://%zz/db",
		},
	},
	"admin_token": {
		[]string{"", strings.Repeat("a", 8), strings.Repeat("~", 200)},
		[]string{strings.Repeat("a", 7), strings.Repeat("a", 201), "0123456789abcde f", "0123456789abcdeü"},
	},
	"auth":                   {[]string{"loopback-open", "required"}, []string{"", "open", "Required"}},
	"lease.ttl":              {[]string{"100ms", "12h"}, []string{"99ms", "12h1ms", "60", "-1s", "x", ""}},
	"lease.grace":            {[]string{"0", "0s", "12h"}, []string{"12h1ms", "-1s"}},
	"lease.sweep":            {[]string{"1ms", "1s"}, []string{"0s", "1001ms"}},
	"lease.brake_share":      {[]string{"1", "100"}, []string{"0", "101", "1.5", "a", ""}},
	"lease.brake_min":        {[]string{"1", "1000000"}, []string{"0", "1000001"}},
	"lease.brake_rate":       {[]string{"1", "1000000"}, []string{"0", "1000001"}},
	"capacity.total_units":   {[]string{"6", "1000000"}, []string{"0", "1000001", "99999999999999999999"}},
	"capacity.reserve_units": {[]string{"0", "99"}, []string{"-1", "100"}},
	"capacity.busy":          {[]string{"host", "0", "10"}, []string{"-1", "11", "HOST", ""}},
	"capacity.backfill":      {[]string{"true", "false"}, []string{"yes", "1", ""}},
	"capacity.percent": {
		[]string{"0,0,0,0,0,0,0,0,0,0,100", "100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0"},
		[]string{
			"", "1,2,3", "0,0,0,0,0,0,0,0,0,0,0,0", "101,0,0,0,0,0,0,0,0,0,0", "-1,0,0,0,0,0,0,0,0,0,0",
			"a,0,0,0,0,0,0,0,0,0,0",
		},
	},
	"capacity.points.cpu": {
		[]string{"", "0", "50,100"},
		[]string{"100.1", "-1", "50,50", "50,40", "a", "NaN", "1,2,3,4,5,6,7,8,9,10,11"},
	},
	"capacity.points.memory":      {[]string{"0,100"}, []string{"101"}},
	"capacity.points.p95_ms":      {[]string{"0.5,1000000"}, []string{"1000001"}},
	"capacity.points.error_share": {[]string{"0.01,1"}, []string{"1.01"}},
	"capacity.points.in_flight":   {[]string{"1,2,3,4,5,6,7,8,9,10"}, []string{"1000001"}},
	"tenants.default_cap":         {[]string{"1", "1000000"}, []string{"0", "1000001"}},
	"jobs.max_attempts":           {[]string{"1", "50"}, []string{"0", "51"}},
	"jobs.backoff_first":          {[]string{"1ms", "5m"}, []string{"0s", "5m1ms", "30d1ms"}},
	"jobs.backoff_max":            {[]string{"1s", "30d"}, []string{"999ms", "30d1ms"}},
	"jobs.max_interruptions":      {[]string{"0", "1000000"}, []string{"-1", "1000001"}},
	"jobs.max_messages":           {[]string{"1", "100000"}, []string{"0", "100001"}},
	"jobs.journal_limit":          {[]string{"1KiB", "256MiB"}, []string{"1023B", "262145KiB"}},
	"jobs.journal_entry":          {[]string{"1KiB", "1MiB"}, []string{"1023B", "1025KiB"}},
	"jobs.payload_limit": {
		[]string{"1KiB", "16MiB", "1024B"}, []string{"1023B", "16385KiB", "256", "256KB", "-1KiB", ""},
	},
	"output.head":             {[]string{"0B", "64MiB"}, []string{"65537KiB", "-1B"}},
	"output.tail":             {[]string{"0B", "64MiB"}, []string{"65537KiB", "-1B"}},
	"circuit.failures":        {[]string{"1", "1000000"}, []string{"0", "1000001"}},
	"circuit.cooldown":        {[]string{"1ms", "30d"}, []string{"0s", "30d1ms"}},
	"sentinel.interval":       {[]string{"1ms", "119999ms"}, []string{"0s", "2m"}},
	"sentinel.scan":           {[]string{"1ms", "30d"}, []string{"0s", "30d1ms"}},
	"sentinel.stale_after":    {[]string{"30001ms", "599999ms"}, []string{"30s", "600s"}},
	"sentinel.dead_after":     {[]string{"120001ms", "30d"}, []string{"120s", "30d1ms"}},
	"executor.kill_grace":     {[]string{"0s", "1h"}, []string{"1h1ms"}},
	"recovery.limit":          {[]string{"1ms", "30d"}, []string{"0s", "30d1ms"}},
	"recovery.watch":          {[]string{"10001ms", "30d"}, []string{"10s", "30d1ms"}},
	"recovery.poll":           {[]string{"1ms", "299999ms"}, []string{"0s", "5m"}},
	"recovery.resumed_within": {[]string{"1ms", "30d"}, []string{"0s", "30d1ms"}},
	"recovery.cleanup_delay":  {[]string{"0s", "30d"}, []string{"30d1ms"}},
	"alerts.job_failed":       {[]string{"true", "false"}, []string{"no"}},
	"recovery.clean_unknown":  {[]string{"true"}, []string{"TRUE"}},
	"retention.jobs":          {[]string{"1ms", "3650d"}, []string{"0s", "3650d1ms"}},
	"retention.audit":         {[]string{"1ms", "3650d"}, []string{"0s", "3650d1ms"}},
	"retention.workspaces":    {[]string{"1ms", "3650d"}, []string{"0s", "3650d1ms"}},
	"alerts.webhook":          {[]string{"", "http://h/x", "https://h"}, []string{"h/x", "ftp://h", "http://"}},
	"alerts.webhook_secret":   {[]string{"", "01234567"}, []string{"0123456"}},
	"alerts.allow_hosts":      {[]string{"", "a.example,10.0.0.1"}, []string{"http://a", "a:80", "a,,b"}},
	"telemetry.otlp_endpoint": {[]string{"", "http://h:4318"}, []string{"h:4318"}},
	"telemetry.log":           {[]string{"text", "json"}, []string{"", "xml"}},
	"telemetry.log_level":     {[]string{"debug", "error"}, []string{"", "trace"}},
	"http.trusted_proxies": {
		[]string{"", "127.0.0.1", "10.0.0.0/8,::1,2001:db8::/32", strings.Repeat("::1,", 99) + "::1"},
		[]string{"proxy.example", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", strings.Repeat("::1,", 100) + "::1"},
	},
	"http.hosts": {
		[]string{"lessor.example", "a_b", "::1", strings.Repeat("a,", 99) + "a"},
		[]string{"a/b", "-a", "a-", ".", strings.Repeat("a", 64), strings.Repeat("a,", 100) + "a"},
	},
}

func TestEachBoundFromBothSides(t *testing.T) {
	for _, k := range Keys() {
		b, ok := bounds[k.Name]
		if !ok {
			t.Errorf("%s: no bounds are tested", k.Name)
			continue
		}
		for _, text := range b.good {
			l, err := Load(Sources{Flags: []Flag{{Key: k.Name, Name: "--x", Value: text}}})
			if err != nil {
				t.Errorf("%q was refused: %v", text, err)
				continue
			}
			again := Default()
			if err := k.set(&again, k.value(&l.Config)); err != nil || k.value(&again) != k.value(&l.Config) {
				t.Errorf("%s: %q is printed as %q, which does not read back", k.Name, text, k.value(&l.Config))
			}
		}
		for _, text := range b.bad {
			_, err := Load(Sources{Flags: []Flag{{Key: k.Name, Name: "--x", Value: text}}})
			if err == nil {
				t.Errorf("%s: %q was accepted", k.Name, text)
				continue
			}
			msg := err.Error()
			if !strings.Contains(msg, k.Name) || !strings.Contains(msg, "flag --x") ||
				!strings.Contains(msg, "allowed is") && !strings.Contains(msg, "must be") {
				t.Errorf("%s: the refusal of %q does not name key, source and allowed values: %s", k.Name, text, msg)
			}
		}
	}
}

func TestDefaultsAreValidAndDerivedFromData(t *testing.T) {
	l, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Store != "sqlite:./lessor-data/lessor.db" || l.Workspace != "./lessor-data/workspace" {
		t.Errorf("store %q, workspace %q", l.Store, l.Workspace)
	}
	l, err = Load(Sources{Flags: []Flag{{"data", "--data", "/d/"}, {"workspace", "--workspace", "/w"}}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Store != "sqlite:/d/lessor.db" || l.Workspace != "/w" {
		t.Errorf("store %q, workspace %q", l.Store, l.Workspace)
	}
}

func TestZeroMeansDefaultOnlyInAConfigMadeByHand(t *testing.T) {
	var hand Config
	hand.Capacity.TotalUnits = 7
	got := hand.WithDefaults()
	if got.Capacity.TotalUnits != 7 || got.Capacity.ReserveUnits != 5 || got.Lease.TTL != Default().Lease.TTL {
		t.Errorf("capacity %+v, lease %+v", got.Capacity, got.Lease)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	got.Capacity.ReserveUnits = 0
	if again := got.WithDefaults(); again.Capacity.ReserveUnits != 0 {
		t.Error("a reserve of 0 in a complete Config became the default")
	}
	l, err := Load(Sources{Environ: []string{"LESSOR_CAPACITY_RESERVE_UNITS=0"}})
	if err != nil || l.WithDefaults().Capacity.ReserveUnits != 0 {
		t.Errorf("reserve %d, err %v", l.Capacity.ReserveUnits, err)
	}
}

func TestEveryFieldHasAKeyAndEveryKeyItsOwnField(t *testing.T) {
	c := Default()
	seen := map[any]string{}
	for _, k := range Keys() {
		p := k.field(&c)
		if other, ok := seen[p]; ok {
			t.Errorf("%s and %s share a field", k.Name, other)
		}
		seen[p] = k.Name
	}
	var fields func(v reflect.Value) int
	fields = func(v reflect.Value) int {
		if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[Busy]() {
			return 1
		}
		n := 0
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += fields(v.Field(i))
			}
		}
		return n
	}
	if n := fields(reflect.ValueOf(c)); n != len(seen) {
		t.Errorf("Config has %d fields, the table %d keys", n, len(seen))
	}
}
