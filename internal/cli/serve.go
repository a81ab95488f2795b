package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"lessor/client"
	"lessor/internal/config"
	"lessor/internal/demo"
	"lessor/internal/table"
	"lessor/node"
)

// serveSettings are the settings that have a flag.
var serveSettings = []struct{ flag, key, usage string }{
	{"listen", "listen", "address to listen on"},
	{"data", "data", "folder for all stored data"},
	{
		"store", "store",
		"where jobs are stored: sqlite:PATH or postgres://USER@HOST/DATABASE (default: lessor.db in the data folder)",
	},
	{"workspace", "workspace", "folder in which lessor work runs commands (default: workspace in the data folder)"},
	{"log", "telemetry.log", "format of the log: text or json"},
	{"log-level", "telemetry.log_level", "least level that is logged: debug, info, warn or error"},
}

type serveFlags struct {
	file              string
	demo, printConfig bool
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: `Serve runs a server until it gets SIGINT or SIGTERM; a second signal ends it at once.

Every setting is a key of the YAML file and an environment variable (lease.ttl is LESSOR_LEASE_TTL); the common ones are
flags too. A flag wins over the environment, the environment over the file, the file over the default. See
docs/configuration.md for all keys.`,
		Example: `  lessor serve
  lessor serve --demo
  lessor serve --config /etc/lessor.yaml --print-config
  LESSOR_LEASE_TTL=30s lessor serve --listen 127.0.0.1:80 --data /var/lib/lessor`,
	}
	defaults := config.Default()
	shown := map[string]string{
		"listen": defaults.Listen, "data": defaults.Data,
		"log": defaults.Telemetry.Log, "log-level": defaults.Telemetry.LogLevel,
	}
	for _, s := range serveSettings {
		usage := s.usage
		if d := shown[s.flag]; d != "" {
			usage += " (default " + d + ")"
		}
		cmd.Flags().String(s.flag, "", usage)
	}
	cmd.Flags().StringVar(&f.file, "config", "", "YAML file with settings (LESSOR_CONFIG)")
	cmd.Flags().BoolVar(&f.demo, "demo", false, "simulate tenants and workers on jobs of types demo.*")
	cmd.Flags().BoolVar(&f.printConfig, "print-config", false, "print each setting, its value and its origin, and exit")
	completes(cmd, "log", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	completes(cmd, "log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, f) })
	return cmd
}

func (a *app) serve(cmd *cobra.Command, f serveFlags) error {
	loaded, err := a.loadConfig(cmd, f.file)
	if err != nil {
		return usageError{err}
	}
	if f.printConfig {
		t := a.table()
		t.Head("KEY", "VALUE", "SOURCE+")
		for _, row := range loaded.Rows() {
			t.Row(row...)
		}
		return t.Flush()
	}
	log := a.logger(loaded.Config)
	for _, name := range loaded.Unused {
		log.Warn("environment variable is not a setting and has no effect", "name", name)
	}
	ctx := cmd.Context()
	ln, err := listen(ctx, loaded.Listen)
	if err != nil {
		return err
	}
	all := loaded.Config
	all.Telemetry.LogLevel = "debug" // the node applies the level itself, because it can be changed
	n, err := node.OpenSettings(ctx, loaded.Config, a.logger(all))
	if errors.Is(err, context.Canceled) {
		return ln.Close() // stopped by a signal before it began
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	n.RecordAddress(ln.Addr()) // before the address is printed
	a.greet(n, loaded.Config, ln.Addr())
	stop := context.AfterFunc(ctx, func() {
		a.note("stopping; accepted calls are answered first, a second signal ends the server at once")
	})
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	if f.demo {
		background.Go(func() {
			if err := a.demo(ctx, n, loaded.Config, ln.Addr()); err != nil {
				log.Error("demo ended", "error", err)
			}
		})
	}
	err = n.Serve(ctx, ln)
	cancel()
	background.Wait()
	return errors.Join(err, n.Close())
}

func (a *app) loadConfig(cmd *cobra.Command, file string) (config.Loaded, error) {
	sources := config.Sources{File: cmp.Or(file, a.getenv("LESSOR_CONFIG")), Environ: a.Environ}
	for _, s := range serveSettings {
		if f := cmd.Flags().Lookup(s.flag); f.Changed {
			sources.Flags = append(sources.Flags, config.Flag{Key: s.key, Name: "--" + s.flag, Value: f.Value.String()})
		}
	}
	return config.Load(sources)
}

// logger writes to standard error; scripts read standard output.
func (a *app) logger(cfg config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Telemetry.LogLevel)); err != nil {
		level = slog.LevelInfo // cannot happen: the setting was checked
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Telemetry.Log == "json" {
		return slog.New(slog.NewJSONHandler(a.Err, opts))
	}
	return slog.New(slog.NewTextHandler(a.Err, opts))
}

// listen opens the port, before the store is opened.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf(
			"%s is in use: is another `lessor serve` running? choose another address with --listen", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return ln, nil
}

// greet prints what a newcomer needs next. Scripts rely on the first line.
func (a *app) greet(n *node.Node, cfg config.Config, addr net.Addr) {
	a.say("listening on http://%s", addr)
	a.say("store        %s", config.MaskURL(cfg.Store))
	switch {
	case cfg.AdminToken != "":
		a.say("admin token  as set by admin_token")
	case n.FirstStart():
		line := fmt.Sprintf("admin token  in %s (created now, readable only by you)", n.TokenFile())
		a.say("%s", strings.Join(table.Fold(line, helpWidth, "             "), "\n"))
	default:
		a.say("admin token  in %s", n.TokenFile())
	}
	a.say("access       %s", n.Access())
	if n.FirstStart() {
		a.say("dashboard    %s/login?code=%s", reachable(addr), n.LoginCode())
		a.say("             (the link works once, within 10 min)")
	} else {
		a.say("dashboard    %s", reachable(addr))
	}
	const label = "first job    "
	a.say("%s%s", label, a.hint(cfg, addr, len(label), "submit hello", `--payload '{"name":"world"}'`))
}

// hint returns a command line that reaches this server from the current folder. If it does not fit into a terminal
// after indent characters, each flag has its own line.
func (a *app) hint(cfg config.Config, addr net.Addr, indent int, command string, flags ...string) string {
	parts := append([]string{shellWord(cmp.Or(a.Program, "lessor")) + " " + command}, flags...)
	if near := reachable(addr); near != client.DefaultServer {
		parts = append(parts, "--server "+near)
	}
	if cfg.Data != config.Default().Data {
		parts = append(parts, "--data "+shellWord(cfg.Data))
	}
	if line := strings.Join(parts, " "); indent+len(line) <= helpWidth {
		return line
	}
	return strings.Join(parts, " \\\n"+strings.Repeat(" ", indent+2))
}

// shellWord quotes s, if a shell would take it for more than one word.
func shellWord(s string) string {
	if regexp.MustCompile(`^[\w./:@%+=,-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reachable returns the server's base URL for callers on this machine. If the server listens on all addresses, that is
// the loopback address.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + addr.String()
}

func (a *app) demo(ctx context.Context, n *node.Node, cfg config.Config, addr net.Addr) error {
	token := cfg.AdminToken
	if token == "" {
		raw, err := os.ReadFile(n.TokenFile())
		if err != nil {
			return fmt.Errorf("read the admin token: %w", err)
		}
		token = strings.TrimSpace(string(raw))
	}
	return demo.Run(ctx, demo.Config{
		Server: reachable(addr), Token: token, Out: a.Out, Hint: a.hint(cfg, addr, demo.HintIndent, "jobs"),
	})
}
