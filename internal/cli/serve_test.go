package cli

import (
	"net"
	"strings"
	"testing"

	"lessor/internal/config"
	"lessor/node"
)

// TestGreetingHidesPasswords: the output of a server ends up in logs.
func TestGreetingHidesPasswords(t *testing.T) {
	n, err := node.Open(t.Context(), node.Config{Data: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	var out strings.Builder
	a := &app{IO: IO{Out: &out}}
	cfg := config.Config{Store: "postgres://ann:sesame@db/lessor?sslpassword=sesame"}
	a.greet(n, cfg, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5377})
	if strings.Contains(out.String(), "sesame") || !strings.Contains(out.String(), "postgres://ann:") {
		t.Errorf("the greeting is\n%s\nwant the address without its passwords", &out)
	}
}

func TestHintsNameTheProgramAsItWasStarted(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5377}
	for program, want := range map[string]string{
		"": "lessor jobs", "lessor": "lessor jobs", "bin/lessor": "bin/lessor jobs", "./my dir/l": "'./my dir/l' jobs",
	} {
		if got := (&app{IO: IO{Program: program}}).hint(config.Default(), here, 0, "jobs"); got != want {
			t.Errorf("started as %q: %s, want %s", program, got, want)
		}
	}
}

func TestHintThatIsTooLongHasALineForEachFlag(t *testing.T) {
	cfg, there := config.Default(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6377}
	cfg.Data = "/data"
	for program, want := range map[string]string{
		"lessor": "lessor submit hello --payload {} --server http://127.0.0.1:6377 --data /data",
		"/opt/lessor": "/opt/lessor submit hello \\\n  --payload {} \\\n  --server http://127.0.0.1:6377 \\\n" +
			"  --data /data",
	} {
		got := (&app{IO: IO{Program: program}}).hint(cfg, there, 0, "submit hello", "--payload {}")
		if got != want {
			t.Errorf("started as %q:\n%s\nwant\n%s", program, got, want)
		}
	}
}
