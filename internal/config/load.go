package config

import (
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"agency"
)

const fromDefault = "default"

// Load reads the configuration of a user whose environment is env. The file is explicit (what --config says) or that of
// AGENCY_CONFIG, which then must exist, or else $XDG_CONFIG_HOME/agency/config.toml, by default in ~/.config, which
// need not.
//
// Everything that is wrong is reported at once: E_CONFIG_INVALID carries the first problem, and all of them in the
// detail "problems". No file names the data root and the socket, so a Config that holds nothing else to rely on comes with
// an error of the rest. Without them it is nil: a bad socket in the environment is E_SOCKET_PATH_INVALID.
func Load(explicit string, env []string) (*Config, error) {
	e := environment(env)
	home, homeFrom, err := e.dataRoot()
	if err != nil {
		return nil, err
	}
	socket, socketFrom, note, err := e.socket(home)
	if err != nil {
		return nil, err
	}
	c := defaults()
	c.Home, c.Socket, c.SocketNote = home, socket, note
	path, data, err := e.file(explicit)
	if err != nil {
		return c, err
	}

	c.Path, c.Exists = path, data != nil
	var found problems
	entries, faults := parse(data)
	f := newFormat(c, customNames(entries))
	f.addNotify(c, channelNames(entries))
	f.addPresets(presetNames(entries), filepath.Dir(path))
	found.add(f.read(entries, filepath.Base(path))...)
	found.add(f.checkWhole()...)
	found.add(f.checkChannels()...)
	found.add(f.checkPresets()...)
	for _, fault := range faults {
		if !found.on(fault.at.line) { // else it is told already, in better words
			found.add(fault)
		}
	}
	found.add(f.override(e)...)
	level, levelFrom, bad := logLevel(c, e)
	found.add(bad...)
	if len(found) > 0 {
		return c, found.err(path)
	}

	c.Runners, c.Custom = f.runners()
	c.Notify.Channels, c.Presets = f.channelsRead(), f.presetsRead()
	c.origins = append([]Origin{
		{"home", quote(home), homeFrom},
		{"socket", quote(socket), socketFrom},
		{"log_level", quote(level), levelFrom},
	}, f.origins()...)
	return c, nil
}

// watchdogVariables are the variables that have the last word on keys of the watchdog.
var watchdogVariables = []struct{ variable, key string }{
	{"AGENCY_WATCHDOG_POLL_INTERVAL", "watchdog.poll_interval_secs"},
	{"AGENCY_WATCHDOG_STUCK_THRESHOLD", "watchdog.stuck_threshold_intervals"},
	{"AGENCY_WATCHDOG_WORKER_TAGS", "watchdog.worker_tags"},
	{"AGENCY_WATCHDOG_ORCHESTRATOR_TAG", "watchdog.orchestrator_tag"},
}

// override lays these variables over the file. A list has commas between its items.
func (f *format) override(e environment) (bad []problem) {
	for _, o := range watchdogVariables {
		text, variable := e.first(o.variable)
		if text == "" {
			continue
		}
		v := value{kind: unstable.String, text: text}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v = value{kind: unstable.Integer, text: strconv.FormatInt(n, 10)}
		}
		if o.key == "watchdog.worker_tags" {
			v = value{kind: unstable.Array}
			for item := range strings.SplitSeq(text, ",") {
				v.items = append(v.items, value{kind: unstable.String, text: strings.TrimSpace(item)})
			}
		}
		if err := f.keys[o.key].set(v); err != nil {
			bad = append(bad, problem{variable: variable, text: err.Error()})
			continue
		}
		f.from[o.key] = variable
	}
	return bad
}

// logLevels are the values of AGENCY_LOG.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logLevel sets the level that the environment asks for, and says what did.
func logLevel(c *Config, e environment) (text, from string, bad []problem) {
	text, variable := e.first(envLog)
	if text == "" {
		return "info", fromDefault, nil
	}
	level, ok := logLevels[text]
	if !ok {
		known := slices.Sorted(maps.Keys(logLevels))
		return "", "", []problem{{
			variable: variable, text: "must be debug, info, warn or error, not " + quote(clip(text)), hint: didYouMean(agency.Nearest(text, known)),
		}}
	}
	c.LogLevel = level
	return text, variable, nil
}

// runners are what the file has made of the programs, by kind and by name.
func (f *format) runners() (map[agency.RunnerKind]Runner, map[string]Runner) {
	kinds, custom := map[agency.RunnerKind]Runner{}, map[string]Runner{}
	for kind, r := range f.kinds {
		kinds[kind] = *r
	}
	for name, r := range f.custom {
		custom[name] = *r
	}
	return kinds, custom
}
