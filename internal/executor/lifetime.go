package executor

import (
	"context"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// lifetime says how long commands live: what happens to them when their Runner ends.
type lifetime struct {
	stops bool     // the Runner stops them when it stops itself
	dies  string   // why they cannot outlive it; "" = they do
	scope []string // starts a shim in a systemd scope of its own; nil = none is needed or possible
}

// containerInits are programs that are process 1 of a container and end with their only child.
var containerInits = []string{"tini", "docker-init", "dumb-init", "catatonit", "pause"}

// supervision is what supervises this process, on which the lifetime of its commands depends.
type supervision struct {
	pid, parent int
	init        string // the name of process 1
	cgroup      string // as /proc/self/cgroup says
}

// readSupervision reads what supervises this process.
func readSupervision() supervision {
	return supervision{os.Getpid(), os.Getppid(), fileText("/proc/1/comm"), fileText("/proc/self/cgroup")}
}

// lifetimeOf finds out whether commands outlive their Runner. A session of its own protects a shim from a terminal, but
// not from the end of its container, nor from systemd, which kills all processes of a unit, unless the shim has a
// scope.
func lifetimeOf(ctx context.Context, s supervision, on OnStop) (f lifetime) {
	unit, user := s.unit()
	switch {
	case s.pid == 1:
		f.dies = "this is process 1 of its container"
	case s.parent == 1 && slices.Contains(containerInits, s.init):
		f.dies = "its container ends with it"
	case on != OnStopStop && killsGroup(ctx, unit, user):
		if f.scope = scopeCommand(ctx, user); f.scope == nil {
			f.dies = "systemd ends all processes of " + unit + ", and does not let it make scopes"
		}
	}
	f.stops = on == OnStopStop || on == OnStopAuto && f.dies != ""
	return f
}

// findLifetime finds out whether commands outlive the Runner, and logs it if they do not.
func (r *Runner) findLifetime(ctx context.Context) {
	r.lifetime = lifetimeOf(ctx, readSupervision(), r.cfg.OnStop)
	switch {
	case r.lifetime.dies == "":
	case r.lifetime.stops:
		r.cfg.Log.Info("a signal will stop the running commands", "reason", r.lifetime.dies)
	default:
		r.cfg.Log.Warn("commands will not outlive this program", "reason", r.lifetime.dies)
	}
}

// unit returns the systemd service of a process, "" if there is none, and whether it is one of a user's manager.
func (s supervision) unit() (unit string, user bool) {
	for line := range strings.Lines(s.cgroup) {
		// 0::/system.slice/lessor-work.service; with version 1, 1:name=systemd:/system.slice/lessor-work.service
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		if last := path.Base(fields[2]); strings.HasSuffix(last, ".service") {
			return last, strings.Contains(fields[2], "/user@")
		}
	}
	return "", false
}

// killsGroup reports whether the end of a unit ends all its processes.
func killsGroup(ctx context.Context, unit string, user bool) bool {
	if unit == "" {
		return false
	}
	mode := ask(ctx, ofManager("systemctl", user, "show", "--property=KillMode", "--value", unit))
	return mode != "process" && mode != "none"
}

// scopeCommand returns the command that runs another one in a scope of its own, nil if systemd does not allow that.
func scopeCommand(ctx context.Context, user bool) []string {
	scope := ofManager("systemd-run", user, "--scope", "--quiet", "--collect", "--")
	if ask(ctx, slices.Concat(scope, []string{"echo", "yes"})) != "yes" {
		return nil
	}
	return scope
}

// ofManager returns a command to the system's manager, or to the user's.
func ofManager(program string, user bool, args ...string) []string {
	if user {
		args = append([]string{"--user"}, args...)
	}
	return append([]string{program}, args...)
}

// askTimeout bounds a question to systemd, which may wait for a person to give a password.
const askTimeout = 5 * time.Second

// ask returns what a command prints, "" if it fails.
func ask(ctx context.Context, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// fileText returns the text of a small file, "" if it cannot be read.
func fileText(name string) string {
	data, _ := os.ReadFile(name) // where it does not exist, there is nothing to know
	return strings.TrimSpace(string(data))
}
