package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

// TestUpgradeLosesNothing replaces the program under load: the only node on SQLite, and two nodes on PostgreSQL one
// after the other, with the old one killed and started again in between. Every acknowledged job ends once, and a lease
// that was granted before the upgrade is completed after it.
//
// The programs are those of the last release and of this tree. As long as this tree has the schema of the last release,
// this tree is the old program, and the new one is this tree with one more migration.
func TestUpgradeLosesNothing(t *testing.T) {
	t.Parallel()
	old, next, schemas := programs(t)
	t.Run("sqlite", func(t *testing.T) {
		s := startProgram(t, old)
		upgrade(t, []*server{s}, schemas["sqlite"], func(*load) { s.replace(next) })
	})
	t.Run("postgres", func(t *testing.T) {
		db := database(t, pgtest.Options{})
		store := "LESSOR_STORE=" + db.URL("postgres")
		a, b := startProgram(t, old, store), startProgram(t, old, store)
		upgrade(t, []*server{a, b}, schemas["postgres"], func(l *load) {
			a.replace(next)
			l.more(100)    // on nodes of both releases
			b.replace(old) // an old node that fails meanwhile comes back
			l.more(100)
			b.replace(next)
		})
	})
}

func startProgram(t *testing.T, program string, env ...string) *server {
	t.Helper()
	s := &server{
		t: t, data: t.TempDir(), addr: "127.0.0.1:0", program: program,
		env: append(loadSettings(), env...),
	}
	s.start()
	t.Cleanup(s.checkLog)
	t.Cleanup(s.kill)
	return s
}

// replace kills the server and starts another program in its place.
func (s *server) replace(program string) {
	s.t.Helper()
	s.kill()
	s.program = program
	s.start()
}

// schema returns the version of the server's schema.
func (s *server) schema() (version int) {
	s.t.Helper()
	secret, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(client.Config{Server: "http://" + s.addr, Token: strings.TrimSpace(string(secret))})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	findings, err := c.Doctor(s.t.Context())
	for _, f := range findings {
		if f.Name == "schema version" {
			_, err = fmt.Sscan(strings.TrimRight(strings.Fields(f.Detail)[0], ","), &version)
		}
	}
	if err != nil || version == 0 {
		s.t.Fatalf("schema version %d, %v", version, err)
	}
	return version
}

// upgrade calls replace while jobs are submitted, leased and completed on every node, and checks that nothing was lost.
// schema is the version that the new program brings the schema to.
func upgrade(t *testing.T, nodes []*server, schema int, replace func(*load)) {
	c := nodes[0].client()
	held := hold(t, c)
	l := startLoad(t, nodes...)
	l.more(100)
	replace(l)
	l.more(100)
	done := lessor.Completion{WorkerID: new("holder"), Status: new("completed")}
	if err := c.Complete(t.Context(), held.Lease.ID, done); err != nil {
		t.Errorf("complete the lease of before the upgrade: %v", err)
	}
	l.finish()
	for _, s := range nodes {
		if is := s.schema(); is != schema {
			t.Errorf("the schema is version %d after the upgrade, want %d", is, schema)
		}
	}
	if j, err := c.Job(t.Context(), held.Job.ID); err != nil || j.State != lessor.Completed || j.Attempt != 1 {
		t.Errorf("the job that was held all the time is %s after %d attempts, %v", j.State, j.Attempt, err)
	}
}

// hold leases a job for five minutes.
func hold(t *testing.T, c *client.Client) lessor.Grant {
	t.Helper()
	if _, err := c.Submit(t.Context(), "hold", nil, nil); err != nil {
		t.Fatal(err)
	}
	grants, _, err := c.Request(t.Context(), lessor.LeaseRequest{
		WorkerID: new("holder"), Types: []string{"hold"}, TTLMS: new(int64(300_000)), WaitMS: new(int64(5000)),
	})
	if err != nil || len(grants) != 1 {
		t.Fatalf("lease a job to hold: %v, %v", grants, err)
	}
	return grants[0]
}

// programs returns the programs before and after an upgrade, and the schemas after it, by store.
func programs(t *testing.T) (old, next string, schemas map[string]int) {
	t.Helper()
	release, released := lastRelease(t)
	newest := "" // a migration that was not released
	overlay := map[string]string{}
	schemas = map[string]int{}
	for store, text := range nextMigration {
		folder := "../internal/store/" + store + "/migrations/"
		files, err := filepath.Glob(folder + "*.sql")
		if err != nil || len(files) == 0 {
			t.Fatalf("migrations of %s: %v, %v", store, files, err)
		}
		last := files[len(files)-1] // Glob sorts
		if path := strings.TrimPrefix(last, "../"); !released[path] {
			newest = path
		}
		version := 0
		if _, err := fmt.Sscanf(filepath.Base(last), "%d_", &version); err != nil {
			t.Fatal(err)
		}
		made := filepath.Join(t.TempDir(), "next.sql")
		if err := os.WriteFile(made, fmt.Appendf(nil, text, version+1, version), 0o600); err != nil {
			t.Fatal(err)
		}
		place, err := filepath.Abs(fmt.Sprintf("%s%05d_next.sql", folder, version+1))
		if err != nil {
			t.Fatal(err)
		}
		overlay[place], schemas[store] = made, version
	}
	program := filepath.Join(t.TempDir(), "lessor")
	if commit := commitOf(release, newest); commit != "" {
		buildRelease(t, commit, program)
		return program, binary, schemas
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "..", "go", "build", "-overlay", file, "-o", program, "./cmd/lessor")
	for store := range schemas {
		schemas[store]++
	}
	return binary, program, schemas
}

// nextMigration adds to the hot tables as a release may, and allows the programs of the release before to go on.
var nextMigration = map[string]string{
	"sqlite": `-- +goose Up
alter table job add column next text;
alter table lease add column next integer not null default 7;
create index job_next on job (next) where next is not null;
replace into setting (name, value) values ('schema', cast('%d %d' as blob));
`,
	"postgres": `-- +goose Up
set local lock_timeout = '5s';
alter table job add column next text;
alter table lease add column next integer not null default 7;
create index job_next on job (next) where next is not null;
insert into setting (name, value) values ('schema', '%d %d') on conflict (name) do update set value = excluded.value;
`,
}

// lastRelease reads testdata/releases: the tag of the last release, and the migrations that were released.
func lastRelease(t *testing.T) (tag string, released map[string]bool) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/releases")
	if err != nil {
		t.Fatal(err)
	}
	released = map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var path, sum string
		if _, err := fmt.Sscan(line, &tag, &path, &sum); err != nil {
			t.Fatalf("testdata/releases: %q: %v", line, err)
		}
		released[path] = true
	}
	return tag, released
}

// commitOf returns the commit of a release: that of its tag or, in a clone without tags, the last one that changed the
// list of released migrations. It is "" if that has the newest migration too, or if there is no history.
func commitOf(release, newest string) string {
	for _, args := range [][]string{
		{"rev-parse", "--quiet", "--verify", "refs/tags/" + release},
		{"log", "-1", "--format=%H", "--", "../testdata/releases"},
	} {
		out, err := exec.Command("git", args...).Output()
		commit := strings.TrimSpace(string(out))
		if err == nil && exec.Command("git", "cat-file", "-e", commit+":"+newest).Run() != nil {
			return commit
		}
	}
	return ""
}

// buildRelease builds the program of a release.
func buildRelease(t *testing.T, commit, program string) {
	t.Helper()
	tree, archive := t.TempDir(), filepath.Join(t.TempDir(), "release.tar")
	command(t, "..", "git", "archive", "--output", archive, commit)
	command(t, tree, "tar", "-xf", archive)
	command(t, tree, "go", "build", "-o", program, "./cmd/lessor")
}

func command(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
