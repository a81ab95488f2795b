package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

// head is what a manifest needs besides its jobs.
const head = "moduleId: billing\nversion: \"3\"\ntenantId: 0d1f8a52-6c1e-4f0a-9d57-0c4d6f2f3b11\n"

func TestReadTurnsFilesIntoBodies(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{
			"YAML",
			head + `jobs:
  - jobId: nightly
    schedule: {type: cron, cron: "*/5 3 * * MON-FRI"}
    handlerId: post.validate   # a comment
    isEnabled: True
    maxAttempts: 3
    payload:
      note: |
        two
        lines
    timezone:
prune: false
`,
			`{"moduleId":"billing","version":"3","tenantId":"0d1f8a52-6c1e-4f0a-9d57-0c4d6f2f3b11",` +
				`"jobs":[{"jobId":"nightly","schedule":{"type":"cron","cron":"*/5 3 * * MON-FRI"},` +
				`"handlerId":"post.validate","isEnabled":true,"maxAttempts":3,"payload":{"note":"two\nlines\n"},` +
				`"timezone":null}],"prune":false,"dryRun":false}`,
		},
		{
			"YAML in one line", `{moduleId: a, jobs: [], prune: true, dryRun: true}`,
			`{"moduleId":"a","jobs":[],"prune":true,"dryRun":true}`,
		},
		{
			"JSON",
			"\ufeff{\"moduleId\": \"a\",\n\t\"jobs\": [{\"jobId\": \"b\", \"payload\": {\"n\": 1.50, \"s\": " +
				"\"\\ud83d\\ude00 <\\/b>\", \"l\": [null, true, {}]}}]}",
			`{"moduleId":"a","jobs":[{"jobId":"b","payload":{"n":1.50,"s":"😀 </b>","l":[null,true,{}]}}],` +
				`"prune":false,"dryRun":false}`,
		},
		{
			"what other readers turn into something else",
			"moduleId: a\njobs:\n- jobId: b\n  payload: {country: no, switch: on, date: 2026-01-01, time: " +
				"12:30:45, at: 2026-01-01T00:00:00Z, y: yes, tilde: ~, empty: , 'quoted': '5', \"on\": 1}\n",
			`{"moduleId":"a","jobs":[{"jobId":"b","payload":{"country":"no","switch":"on","date":"2026-01-01",` +
				`"time":"12:30:45","at":"2026-01-01T00:00:00Z","y":"yes","tilde":null,"empty":null,"quoted":"5",` +
				`"on":1}}],"prune":false,"dryRun":false}`,
		},
		{
			"whole numbers with a fraction or an exponent",
			"moduleId: a\njobs:\n- {jobId: b, schedule: {type: interval, seconds: 300.0}, maxAttempts: 1e1, " +
				"payload: {n: 300.0}}\n",
			`{"moduleId":"a","jobs":[{"jobId":"b","schedule":{"type":"interval","seconds":300},"maxAttempts":10,` +
				`"payload":{"n":300.0}}],"prune":false,"dryRun":false}`,
		},
		{
			"numbers as they are written",
			"moduleId: a\njobs:\n- jobId: b\n  payload:\n    a: 123456789012345678901234567890\n    b: 1e400\n    " +
				"c: 1.50\n    d: -0\n    e: 1E+5\n    f: 18446744073709551616\n    g: " +
				"0.1000000000000000055511151231257827\n",
			`{"moduleId":"a","jobs":[{"jobId":"b","payload":{"a":123456789012345678901234567890,"b":1e400,` +
				`"c":1.50,"d":-0,"e":1E+5,"f":18446744073709551616,"g":0.1000000000000000055511151231257827}}],` +
				`"prune":false,"dryRun":false}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := Read("f", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 1 {
				t.Fatalf("%d manifests, want one", len(all))
			}
			if diff := cmp.Diff(c.want, string(all[0].Body())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const job = "moduleId: a\njobs:\n- jobId: b\n" // three lines
	for _, c := range []struct{ name, file, want string }{
		{"nothing", "", "f: contains no manifest"},
		{"a comment", "# later\n---\n", "f: contains no manifest"},
		{"too large", strings.Repeat(" ", MaxSize+1), "f: is larger than 16 MiB"},
		{"a list", "- a", "f:1:1: a manifest must be a mapping, not a list"},
		{"no module", "jobs: []", "f:1:1: the manifest has no moduleId"},
		{"no jobs", "moduleId: a", "f:1:1: the manifest has no jobs: write jobs: [] if there are none"},
		{"no job id", "moduleId: a\njobs:\n- handlerId: x", "f:3:3: the job has no jobId"},
		{
			"unknown field", head + "jobs: []\nowner: me",
			`f:5:1: a manifest has no field "owner": there are dryRun, jobs, moduleId, prune, tenantId, version`,
		},
		{
			"field of another spelling", job + "  handler_id: x",
			`f:4:3: each of jobs has no field "handler_id": did you mean handlerId?`,
		},
		{"misspelt field", job + "  lockKye: x", `f:4:3: each of jobs has no field "lockKye": did you mean lockKey?`},
		{
			"field in a schedule", job + "  schedule: {type: cron, expression: x}",
			`f:4:26: schedule has no field "expression": there are cron, seconds, type`,
		},
		{
			"unknown field in JSON", "{\"moduleId\": \"a\",\n  \"jobs\": [{\"jobId\": \"b\", \"dryrun\": 1}]}",
			`f:2:27: each of jobs has no field "dryrun": there are`,
		},
		{"twice", job + "  jobId: c", `f:4:3: mapping key "jobId" already defined`},
		{"twice in JSON", `{"moduleId": "a", "jobs": [], "jobs": []}`, "f:1:31: jobs was given before, in line 1"},
		{
			"twice in a payload", `{"moduleId": "a", "jobs": [{"jobId": "b", "payload": {"x": [{"y": 1, "y": 2}]}}]}`,
			"f:1:70: y was given before, in line 1",
		},
		{"one job twice", job + "- jobId: b\n", `f:4:10: the jobId "b" was used before, in line 3`},
		{"one job in two documents", job + "---\n" + job, `f:7:10: the jobId "b" was used before, in line 3`},
		{
			"no for a boolean", job + "  isEnabled: no",
			"f:4:14: isEnabled must be true or false, not text: write true or false, without quotes",
		},
		{
			"a number for text", "moduleId: a\nversion: 1.10\njobs: []",
			`f:2:10: version must be text, not a number: write "1.10"`,
		},
		{
			"text for a number", job + "  maxAttempts: '3'",
			"f:4:16: maxAttempts must be a number, not text: write 3, without quotes",
		},
		{"a fraction", job + "  maxAttempts: 2.5", "f:4:16: maxAttempts must be a whole number, not 2.5"},
		{"huge", job + "  maxAttempts: 1e99", "f:4:16: maxAttempts must be a whole number of at most 15 digits"},
		{"text for an object", job + "  schedule: daily", "f:4:13: schedule must be a mapping, not text"},
		{"a list as payload", job + "  payload: [1]", "f:4:12: payload must be a mapping, not a list"},
		{"anchor", job + "  payload: &p {a: 1}", "f:4:12: anchors are refused"},
		{"alias", job + "  payload: *p", "f:4:12: aliases are refused"},
		{"merge", job + "  <<: {lockKey: x}", "f:4:3: merges are refused"},
		{"tag", job + "  lockKey: !!str 5", "f:4:12: tags are refused"},
		{"directive", "%YAML 1.1\n---\n" + job, "f:1:1: unexpected directive"},
		{
			"bare star", job + "  schedule:\n    type: cron\n    cron: */5 * * * *",
			"f:6:15: value is not allowed in this context. map key-value is pre-defined: " +
				`put the value in quotes, like "*/5 * * * *"`,
		},
		{
			"bare macro", job + "  schedule:\n    cron: @daily",
			`f:5:11: '@' is a reserved character: put the value in quotes`,
		},
		{"hexadecimal", job + "  payload: {a: 0x1F}", "f:4:16: 0x1F is not a number as JSON writes it"},
		{"leading zero", job + "  payload: {a: 012}", "f:4:16: 012 is not a number as JSON writes it"},
		{"underscore", job + "  payload: {a: 1_000}", "f:4:16: 1_000 is not a number as JSON writes it"},
		{"infinity", job + "  payload: {a: .inf}", "f:4:16: .inf is not a number as JSON writes it"},
		{"sign", job + "  payload: {a: +5}", "f:4:16: +5 is not a number as JSON writes it"},
		{"number as key", job + "  payload: {1: x}", "f:4:13: the key 1 is not text: put it in quotes"},
		{"null as key", job + "  payload:\n    null: x", "f:5:5: the key null is not text"},
		{"tab", job + "\tpayload: {}", "f:4:"},
		{"in the second document", job + "--- # next\nmoduleId: c\njobs: no", "f:6:7: jobs must be a list, not text"},
		{"broken JSON", `{"moduleId": "a", "jobs": [`, "f:1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("f", []byte(c.file))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestReadReportsAllMistakesAtOnce(t *testing.T) {
	_, err := Read("f", []byte("moduleId: a\njobs:\n"+strings.Repeat("- {jobid: x}\n", 100)))
	if err == nil || strings.Count(err.Error(), "\n") != maxErrors-1 {
		t.Errorf("got %v, want %d lines", err, maxErrors)
	}
}

func TestDocumentsAreManifests(t *testing.T) {
	all, err := Read("f", []byte("# first\n---\nmoduleId: a\njobs:\n- jobId: j\n...\n---\n# nothing\n---\nmoduleId: b"+
		"\njobs:\n- jobId: k\n  payload:\n    text: |\n      --- no marker\n- jobId: l\n--- {moduleId: c, jobs: []}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, m := range all {
		got = append(got, append([]string{m.ModuleID}, m.JobIDs...))
	}
	if diff := cmp.Diff([][]string{{"a", "j"}, {"b", "k", "l"}, {"c"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFlagsGoIntoTheBody(t *testing.T) {
	all, err := Read("f", []byte("{moduleId: a, jobs: [], prune: true}"))
	if err != nil {
		t.Fatal(err)
	}
	all[0].Prune, all[0].DryRun = false, true
	if got, want := string(all[0].Body()), `{"moduleId":"a","jobs":[],"prune":false,"dryRun":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhereFindsTheServersField(t *testing.T) {
	all, err := Read("f.yaml",
		[]byte("moduleId: a\njobs:\n- jobId: b\n- jobId: c\n  schedule:\n    type: cron\n    cron: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"moduleId":              "f.yaml:1:11",
		"jobs[0].jobId":         "f.yaml:3:10",
		"jobs[1].schedule.cron": "f.yaml:7:11",
		"jobs[1].lockKey":       "f.yaml:4:3",
		"jobs[7].jobId":         "f.yaml:3:1",
		"tenantId":              "f.yaml:1:1",
		"":                      "f.yaml:1:1",
		"jobs[x].]":             "f.yaml:3:1",
	} {
		if got := all[0].Where(field); got != want {
			t.Errorf("%s is at %s, want %s", field, got, want)
		}
	}
}

// TestShapesFollowTheWords compares the fields of files with those of the API.
func TestShapesFollowTheWords(t *testing.T) {
	var compare func(name string, s shape, words reflect.Type)
	compare = func(name string, s shape, words reflect.Type) {
		for words.Kind() == reflect.Pointer || words.Kind() == reflect.Slice {
			words = words.Elem()
		}
		if s.each != nil {
			s = *s.each
		}
		for f := range words.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			sub, known := s.fields[tag]
			if !known {
				t.Errorf("%s lacks %s", name, tag)
				continue
			}
			if sub.fields != nil || sub.each != nil {
				compare(tag, sub, f.Type)
			}
		}
		if len(s.fields) != words.NumField() {
			t.Errorf("%s has %d fields, and the API %d", name, len(s.fields), words.NumField())
		}
	}
	compare("manifest", manifestShape, reflect.TypeFor[lessor.Manifest]())
}

func FuzzRead(f *testing.F) {
	f.Add(head + "jobs:\n- jobId: b\n  payload: {a: [1, 'x', null]}\n---\nmoduleId: c\njobs: []\n")
	f.Add(`{"moduleId": "a", "jobs": [{"jobId": "b", "payload": {"n": 1e5, "s": "\ud800"}}]}`)
	f.Add("moduleId: a\njobs:\n- jobId: b\n  schedule: {cron: */5}\n...\n%YAML 1.2\n--- |\n x\n")
	f.Fuzz(func(t *testing.T, raw string) {
		all, err := Read("f", []byte(raw))
		if err != nil {
			return
		}
		for _, m := range all {
			var words lessor.Manifest
			decoder := json.NewDecoder(bytes.NewReader(m.Body()))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&words); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Fatalf("%q became %s: %v", raw, m.Body(), err)
			}
			m.Where("jobs[0].payload.a")
		}
	})
}

func TestTooManyKeysAreRefusedAtOnce(t *testing.T) {
	for name, raw := range map[string]string{
		"lines":          "jobs:\n" + strings.Repeat("  key: value\n", 200_000),
		"flow":           "jobs: {" + strings.Repeat("key: value, ", 200_000) + "}",
		"lists in lists": "jobs: " + strings.Repeat("- ", 200_000), "brackets": "jobs: " + strings.Repeat("[", 200_000),
		"carriage returns": strings.Repeat("key: value\r", 200_000),
		"one mapping":      keyLines(20_000, "", "\n"), "one mapping of a list": "jobs:\n-\n" + keyLines(20_000, "  ",
			"\n"),
		"one mapping by carriage returns": keyLines(20_000, "", "\r"),
		"mappings in one":                 keyLines(5_001, "", "\n  a: 1\n"),
	} {
		start := time.Now()
		_, err := Read("f.yaml", []byte(raw))
		want := "more than 50000 values: divide it into several files"
		if strings.Contains(name, "one") {
			want = "more than 5000 keys in one mapping: divide it into several files"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.200v", name, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: refused after %v, want at once", name, took)
		}
	}
}

// keyLines returns lines of one mapping.
func keyLines(n int, indent, end string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sk%d: v%s", indent, i, end)
	}
	return b.String()
}

// TestManyMappingsAreNotOne: the keys of different mappings are not added up, and comments, list items and lines of
// text without a colon are no keys.
func TestManyMappingsAreNotOne(t *testing.T) {
	var b strings.Builder
	b.WriteString("moduleId: a\njobs:\n")
	for i := range 1_200 {
		fmt.Fprintf(&b, "- jobId: j%d\n  # a: b\n  payload:\n    a: 1\n    b: 2\n    list:\n    - c: 1\n    - c: 2\n"+
			"  schedule: {cron: '*/5 * * * *'}\n", i)
	}
	raw := b.String()
	if n := keys(raw); n > 4 {
		t.Errorf("%d keys in one mapping, want at most 4", n)
	}
	if n := keys(keyLines(5_000, " ", "\r\n")); n != 5_000 {
		t.Errorf("%d keys in one mapping, want 5000", n)
	}
	if n := nodes("a: 1\r\nb: 2\r\n"); n != 2 {
		t.Errorf("%d values in two lines, want 2", n)
	}
}

// TestManyUnknownFieldsAreRefusedAtOnce: the search for the field that was meant costs little.
func TestManyUnknownFieldsAreRefusedAtOnce(t *testing.T) {
	start := time.Now()
	if _, err := Read("f.yaml", []byte("moduleId: a\njobs:\n"+strings.Repeat("- a: 1\n  b: 1\n", 5_000))); err == nil {
		t.Error("unknown fields were accepted")
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("refused after %v, want at once", took)
	}
}
