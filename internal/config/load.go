package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flag is a key that was set on the command line.
type Flag struct {
	Key   string // like lease.ttl
	Name  string // like --listen
	Value string
}

// Sources are the sources of Load.
type Sources struct {
	File    string   // path of a YAML file; empty = none
	Environ []string // NAME=value, as from os.Environ
	Flags   []Flag
}

// Loaded is a complete, valid Config and the sources of its values.
type Loaded struct {
	Config
	// Unused names environment variables that look like settings but are not. Load ignores them; the caller warns.
	Unused []string

	sources map[string]string // by key; a missing key has its default
	unread  map[string]bool   // keys with a value that could not be read
}

// Load merges defaults, file, environment and flags. Its error names everything that is wrong.
func Load(s Sources) (Loaded, error) {
	l := Loaded{Config: Default(), sources: map[string]string{}, unread: map[string]bool{}}
	var errs []error
	if s.File != "" {
		settings, err := readFile(s.File)
		errs = append(errs, err, l.apply(settings))
	}
	settings, unused := fromEnvironment(s.Environ)
	l.Unused = unused
	errs = append(errs, l.apply(settings), l.apply(fromFlags(s.Flags)))
	for _, derived := range []string{"store", "workspace"} {
		if k := key(derived); k.zero(&l.Config) {
			l.sources[derived] = "default, from data"
		}
	}
	l.Config = l.WithDefaults()
	errs = append(errs, validate(&l.Config, l.Source, l.unread))
	if err := errors.Join(errs...); err != nil {
		return Loaded{}, err
	}
	return l, nil
}

// Source returns the source of a key's value.
func (l Loaded) Source(name string) string {
	if s, ok := l.sources[name]; ok {
		return s
	}
	return "default"
}

func (l *Loaded) apply(settings []setting) error {
	var errs []error
	for _, s := range settings {
		if err := s.key.set(&l.Config, s.text); err != nil {
			l.unread[s.key.Name] = true
			errs = append(errs, fmt.Errorf("%s: %q (%s) %w: allowed is %s",
				s.key.Name, s.key.shown(s.text), s.source, err, s.key.Allowed))
			continue
		}
		l.sources[s.key.Name] = s.source
	}
	return errors.Join(errs...)
}

// key returns the key of that name, which must exist.
func key(name string) Key {
	keys := Keys()
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		panic("config: no key " + name)
	}
	return keys[i]
}

func fromFlags(flags []Flag) []setting {
	settings := make([]setting, len(flags))
	for i, f := range flags {
		settings[i] = setting{key: key(f.Key), text: f.Value, source: "flag " + f.Name}
	}
	return settings
}

// others are variables of other Lessor programs that look like settings of the server.
var others = []string{"LESSOR_LEASE_ID"}

// fromEnvironment returns the settings among variables, in the order of the table. An empty variable counts as unset,
// because many tools unset variables that way.
func fromEnvironment(environ []string) (settings []setting, unused []string) {
	values := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && value != "" && strings.HasPrefix(name, "LESSOR_") {
			values[name] = value
		}
	}
	for _, k := range Keys() {
		if v, ok := values[k.Env()]; ok {
			settings = append(settings, setting{key: k, text: v, source: "env " + k.Env()})
			delete(values, k.Env())
		}
	}
	for name := range values {
		if looksLikeSetting(name) && !slices.Contains(others, name) {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return settings, unused
}

// looksLikeSetting reports whether a variable begins with the name of a section. Such a variable is not an error:
// orchestrators make variables like LESSOR_HTTP_PORT for a service named lessor.
func looksLikeSetting(name string) bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool {
		section, _, ok := strings.Cut(k.Name, ".")
		return ok && strings.HasPrefix(name, "LESSOR_"+strings.ToUpper(section)+"_")
	})
}
