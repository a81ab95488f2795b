package node

import (
	"reflect"
	"testing"

	"lessor/internal/config"
)

// TestEverySettingHasAField fills every field of Config and expects every setting to differ from its default. It fails
// when a key is added to the configuration file and not to Config.
func TestEverySettingHasAField(t *testing.T) {
	var c Config
	fill(reflect.ValueOf(&c).Elem())
	checkNoDefaults(t, "", reflect.ValueOf(c.settings()), reflect.ValueOf(config.Default().WithDefaults()))
}

// checkNoDefaults fails the test for each setting that has its default.
func checkNoDefaults(t *testing.T, path string, got, def reflect.Value) {
	for i := range got.NumField() {
		name := path + "." + got.Type().Field(i).Name
		switch a, b := got.Field(i), def.Field(i); {
		// `lessor work` and `lessor serve` read these; a node does not.
		case name == ".Executor" || name == ".Telemetry.Log":
		case name == ".complete":
		case a.Kind() == reflect.Struct:
			checkNoDefaults(t, name, a, b)
		case reflect.DeepEqual(a.Interface(), b.Interface()):
			t.Errorf("%s has its default %v although every field of Config is set", name, b)
		}
	}
}

// fill sets every field to a value that no default has.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(777_000_000)
	case reflect.Float64:
		v.SetFloat(0.777)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	}
}

func TestZeroConfigGivesTheDefaults(t *testing.T) {
	if got, want := (Config{}).settings(), config.Default().WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("Config{} gives %+v, want the defaults %+v", got, want)
	}
	s := Config{
		Capacity: CapacityConfig{ReserveUnits: -1, Busy: new(0)}, Jobs: JobConfig{MaxInterruptions: -1},
		Recovery: RecoveryConfig{CleanupDelay: -1}, Alerts: AlertConfig{IgnoreFailedJobs: true}, RequireToken: true,
	}.settings()
	if s.Capacity.ReserveUnits != 0 || s.Jobs.MaxInterruptions != 0 || s.Recovery.CleanupDelay != 0 {
		t.Errorf("negative values give %d, %d and %s, want 0 for each",
			s.Capacity.ReserveUnits, s.Jobs.MaxInterruptions, s.Recovery.CleanupDelay)
	}
	if s.Capacity.Busy != (config.Busy{Set: true}) || s.Alerts.JobFailed || s.Auth != config.AuthRequired {
		t.Errorf("got busy %+v, alerts %+v, auth %s; want 0 units set, no alert of failed jobs, required",
			s.Capacity.Busy, s.Alerts, s.Auth)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
