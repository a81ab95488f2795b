package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lessor.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// whole is the file of the specification.
const whole = `
listen: 127.0.0.1:5377
data: ./lessor-data
store: sqlite:./lessor-data/lessor.db      # or postgres://user@host/db
workspace: ./lessor-data/workspace
admin_token: ""                            # set to choose it; else made at first start
auth: loopback-open                        # or required
lease:    {ttl: 60s, grace: 0s, sweep: 1s, brake_share: 30, brake_min: 10, brake_rate: 200}
capacity: {total_units: 100, reserve_units: 5, busy: host, backfill: false}
tenants:  {default_cap: 25}
jobs:     {max_attempts: 5, backoff_first: 1s, backoff_max: 5m, max_interruptions: 20, payload_limit: 256KiB}
circuit:  {failures: 5, cooldown: 300s}
sentinel: {interval: 30s, scan: 60s, stale_after: 120s, dead_after: 600s}
executor: {kill_grace: 10s}
recovery: {limit: 30m, watch: 5m, poll: 10s, resumed_within: 60s, cleanup_delay: 30s, clean_unknown: false}
retention: {jobs: 7d, audit: 365d, workspaces: 7d}
alerts:   {webhook: "", webhook_secret: "", allow_hosts: []}
telemetry: {otlp_endpoint: "", log: text}
`

func TestTheSpecifiedFileIsTheDefault(t *testing.T) {
	l, err := Load(Sources{File: file(t, whole)})
	if err != nil {
		t.Fatal(err)
	}
	def := Default().WithDefaults()
	for _, k := range Keys() {
		if got, want := k.value(&l.Config), k.value(&def); got != want {
			t.Errorf("%s = %q, the default is %q", k.Name, got, want)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	path := file(t, "listen: 127.0.0.1:1\nlease:\n  ttl: 1s\n  grace: 2s\n  sweep: 20ms\n")
	l, err := Load(Sources{
		File:    path,
		Environ: []string{"LESSOR_LEASE_TTL=1h30m", "LESSOR_LISTEN=127.0.0.1:2", "LESSOR_LEASE_BRAKE_MIN=", "HOME=/x"},
		Flags:   []Flag{{"listen", "--listen", "127.0.0.1:3"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Lease.TTL != 90*time.Minute || l.Lease.Grace != 2*time.Second || l.Lease.BrakeMin != 10 ||
		l.Listen != "127.0.0.1:3" {
		t.Errorf("listen %s, lease %+v", l.Listen, l.Lease)
	}
	want := map[string]string{
		"listen": "flag --listen", "lease.ttl": "env LESSOR_LEASE_TTL", "lease.grace": "file " + path + " line 4",
		"lease.brake_min": "default", "store": "default, from data",
	}
	for name, source := range want {
		if got := l.Source(name); got != source {
			t.Errorf("source of %s is %q, want %q", name, got, source)
		}
	}
}

func TestFileForms(t *testing.T) {
	for name, text := range map[string]string{
		"empty":         "",
		"comment":       "# nothing\n",
		"empty section": "lease:\n# ttl: 1s\ncapacity: {busy: 8}\n",
		"null":          "listen: null\ncapacity: {busy: ~}",
		"list": "capacity:\n  percent: [100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0]\n" +
			"  points: {cpu: [1, 2.5], error_share: [0.10]}\nhttp:\n  hosts:\n    - a.example\n    - b.example\n",
		"quoted":            "lease: {ttl: \"60s\", brake_min: '12'}",
		"list in one value": "http: {hosts: \"a.example, b.example\"}",
	} {
		if _, err := Load(Sources{File: file(t, text)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileRefusals(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "listne: x", "line 1: unknown key listne: allowed are listen,"},
		{"unknown in section", "lease:\n  tll: 60s", "line 2: unknown key lease.tll: allowed are ttl, grace,"},
		{"unknown deep", "capacity: {points: {gpu: [1]}}", "unknown key capacity.points.gpu: allowed are cpu,"},
		{"anchor", "listen: &a 127.0.0.1:1", "anchor"},
		{"alias", "lease: &l {ttl: 1s}\njobs: *l", "anchor"},
		{"merge", "lease:\n  <<: {ttl: 1s}", "not a word"},
		{"tag", "listen: !!str 127.0.0.1:1", "tag"},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2", "2 documents"},
		{"duplicate", "listen: a:1\nlisten: b:1", "already defined"},
		{"scalar for section", "lease: 3", "lease is not a section"},
		{"section for scalar", "listen: {a: 1}", "listen is not a plain value"},
		{"list at the top", "- 1", "the file is not a section"},
		{"number key", "1: 2", "not a word"},
		{"fraction for number", "lease: {brake_min: 1.5}", `"1.5" (file`},
		{"number for span", "lease: {ttl: 60}", "is not a duration"},
		{"nested list", "capacity: {percent: [[1]]}", "not a plain value"},
		{"comma in item", "http: {hosts: [\"a,b\"]}", "not a plain value"},
		{"not YAML", "listen: [", "lessor.yaml"},
		{"too large", "#" + strings.Repeat("x", maxFile), "larger than 1 MiB"},
	} {
		_, err := Load(Sources{File: file(t, tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want %q in it", tt.name, err, tt.want)
		}
	}
	if _, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.yaml")}); err == nil {
		t.Error("a missing file was accepted")
	}
}

func TestAllThatIsWrongIsReported(t *testing.T) {
	_, err := Load(Sources{
		File:    file(t, "lease: {ttl: x, tll: 1s}\nsentinel: {stale_after: 1h, dead_after: y}"),
		Environ: []string{"LESSOR_CAPACITY_BUSY=eleven", "LESSOR_AUTH=never", "LESSOR_RECOVERY_POLL=6m"},
		Flags:   []Flag{{"jobs.max_attempts", "--x", "many"}, {"listen", "--listen", "nonsense"}},
	})
	for _, want := range []string{
		"lease.ttl: ", "lease.tll: ", "env LESSOR_CAPACITY_BUSY", "jobs.max_attempts: ", // cannot be read
		"listen: ", "auth: ", "sentinel.dead_after: ", // not allowed
		"recovery.poll: ", // contradicts another key
	} {
		if err == nil || strings.Count("\n"+err.Error(), want) != 1 {
			t.Errorf("%q is missing, or there twice, in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "stale_after: ") {
		t.Errorf("a key is compared with one that could not be read: %v", err)
	}
}

func TestOrderRefusalNamesBothKeys(t *testing.T) {
	_, err := Load(Sources{Environ: []string{"LESSOR_CAPACITY_TOTAL_UNITS=5"}})
	want := `capacity.reserve_units: "5" (default) must be less than capacity.total_units, ` +
		`which is "5" (env LESSOR_CAPACITY_TOTAL_UNITS)`
	if err == nil || err.Error() != want {
		t.Errorf("err = %v\nwant  %s", err, want)
	}
}

func TestUnusedVariablesAreNamed(t *testing.T) {
	l, err := Load(Sources{Environ: []string{
		"LESSOR_LEASE_TLL=1s", "LESSOR_SERVER=http://x", "LESSOR_TOKEN=t", "LESSOR_LEASE_ID=x", "LESSOR_PORT=tcp://1",
		"LESSOR_HTTP_PORT=tcp://1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"LESSOR_HTTP_PORT", "LESSOR_LEASE_TLL"}, l.Unused); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func TestPrintShowsEachKeyAndNoSecret(t *testing.T) {
	l, err := Load(Sources{Environ: []string{
		"LESSOR_ADMIN_TOKEN=hunter2hunter2hunter2", "LESSOR_ALERTS_WEBHOOK_SECRET=hunter2hunter2hunter2",
		"LESSOR_STORE=postgres://ann:hunter2@h/db?password=hunter2&sslmode=disable",
		"LESSOR_ALERTS_WEBHOOK=https://u:hunter2@h/x",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, row := range l.Rows() {
		out.WriteString("\n" + strings.Join(row, " ") + " ")
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	for _, k := range Keys() {
		if !strings.Contains(out.String(), "\n"+k.Name+" ") {
			t.Errorf("%s is not shown", k.Name)
		}
	}
	for _, want := range []string{
		"postgres://ann:*****@h/db", "env LESSOR_STORE", `telemetry.otlp_endpoint "" `,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown in\n%s", want, out.String())
		}
	}
}

func TestErrorsShowNoSecret(t *testing.T) {
	_, err := Load(Sources{Environ: []string{
		"LESSOR_ADMIN_TOKEN=hunter2", "LESSOR_STORE=mysql://u:hunter2@h/db", "LESSOR_ALERTS_WEBHOOK_SECRET=hunter2",
	}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("err = %v", err)
	}
}

func TestErrorsAboutTheFileShowNoSecret(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"admin_token: \"hunter2\n", "[1:14] could not find end character"},
		{"admin_token: 'hunter2\n", "[1:14] could not find end character"},
		{"admin_token: 'it's hunter2'\n", "[1:18] value is not allowed"},
		{"admin_token: \"hunter2\" hunter2\n", "[1:24] value is not allowed"},
		{"admin_token: \"hun\n---\nhunter2\"\n", "[2:1] found unexpected document separator"},
		{"admin_token: \"hunter2\\qx\"\n", "[1:23] found unknown escape character …"},
		{"admin_token: \"\\uD800hunter2\"\n", "[1:15] found unexpected character"},
		{"admin_token: @hunter2\n", "[1:14] … is a reserved character"},
		{"admin_token: ]hunter2\n", "[1:14] could not find '[' character corresponding to ']'"},
		{"admin_token: [hunter2\n", "[1:14] sequence end token ']' not found"},
		{"admin_token: {hunter2\n", "[1:15] could not find flow map content"},
		{"admin_token: |hunter2\n", "[1:14] invalid header option: …"},
		{"admin_token: >\"hunter2\n", "[1:14] invalid header option: …"},
		{"admin_token: &hunter2\n", "[1:14] undefined anchor value"},
		{"admin_token: %hunter2\n", "[1:14] unexpected directive value"},
		{"admin_token: !hunter2{ x\n", "[1:22] found invalid tag character '{'"},
		{"%YAML hunter2\n---\nlisten: a:1\n", "[1:7] unknown YAML version …"},
		{"admin_token: hunter2\n  lease: 1\n bad: x\n", "[1:14] mapping value is not allowed"},
		{"admin_token: hunter2: x\n", "[1:14] mapping value is not allowed"},
		{"store: postgres://u:hunter2@h/db: x\n", "[1:8] mapping value is not allowed"},
		{"admin_token: |\n x\nhunter2\n", "[3:1] non-map value is specified"},
		{"admin_token: hunter2\n\tlisten: x\n", "[2:1] found character '\t'"},
		{"admin_token: hunter2\nadmin_token: hunter2\n", "[2:1] mapping key … already defined at [1:1]"},
		{"admin_token:\n  hunter2: x\n  hunter2: y\n", "[3:3] mapping key … already defined at [2:3]"},
		{"alerts: {webhook_secret: a,hunter2}\n", "line 1: alerts has an entry without a colon"},
		{"admin_token: {a: hunter2}\n", "line 1: admin_token is not a plain value"},
		{"admin_token: [hunter2, {}]\n", "line 1: admin_token is not a plain value"},
		{"admin_token: !!int hunter2\n", "line 1: admin_token is not a plain value"},
		{"admin_token: *hunter2\n", "line 1: admin_token is not a plain value"},
		{"admin_token: [a, hunter2]\nstore: u:hunter2@h\n", `store: "*****" (file`},
		{"admin_token:hunter2\n", "line 1: the file is not a section"},
	} {
		_, err := Load(Sources{File: file(t, tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: err = %v, want %q in it and no hunter2", tt.text, err, tt.want)
		}
	}
}

func TestTooManyLinesAreRefusedAtOnce(t *testing.T) {
	start := time.Now()
	_, err := parseFile("f.yaml", []byte(strings.Repeat("a: b\n", 200_000)))
	if err == nil || !strings.Contains(err.Error(), "more than 5000 lines") {
		t.Errorf("got %.200v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("refused after %v, want at once", took)
	}
}
