package config

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/document"
)

const fromDefault = "default"

// Load reads the configuration of a user whose environment is env. The file is explicit (the value
// of --config) or that of AGENCY_CONFIG, which then must exist, or else
// $XDG_CONFIG_HOME/agency/config.toml, by default in ~/.config, which need not exist.
//
// All problems are reported at once: E_CONFIG_INVALID carries the first, and all of them in the
// detail "problems". The data root and the socket do not depend on the file, so an invalid file
// still gives a Config, in which only they are reliable, together with the error. If they are
// invalid, the Config is nil: a bad socket in the environment is E_SOCKET_PATH_INVALID.
func Load(explicit string, env []string) (*Config, error) {
	e := environment(env)
	return e.load(func() (string, []byte, error) { return e.file(explicit) })
}

// load is Load with the file that read returns.
func (e environment) load(read func() (path string, data []byte, err error)) (*Config, error) {
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
	path, data, err := read()
	if err != nil {
		return c, err
	}

	c.Path, c.Exists = path, data != nil
	root, faults := document.TOML(data)
	f := newFormat(c, namesIn(root.Lookup("runners", "custom"), checkCustomName))
	f.addNotify(c, namesIn(root.Lookup("notify", "channels"), checkChannelName))
	f.addTUI(namesIn(root.Lookup("tui", "keys"), checkKeyName), namesIn(root.Lookup("tui", "views"), checkViewName))
	f.addPresets(namesIn(root.Lookup(presetTable), checkPresetName), filepath.Dir(path))
	f.read("", root)
	f.checkWhole()
	f.checkChannels()
	f.checkPresets()
	f.found.AddFaults(faults)
	f.override(e)
	level, levelFrom := f.logLevel(c, e)
	if err := f.found.Err(agency.CodeConfigInvalid); err != nil {
		return c, err
	}

	c.Runners, c.Custom = valuesOf(f.kinds), valuesOf(f.custom)
	c.Notify.Channels, c.Presets = valuesOf(f.channels), valuesOf(f.presets)
	c.TUI = TUI{Keys: valuesOf(f.chosen), Views: valuesOf(f.views)}
	c.origins = append([]Origin{
		{"home", quote(home), homeFrom},
		{"socket", quote(socket), socketFrom},
		{"log_level", quote(level), levelFrom},
	}, f.origins()...)
	return c, nil
}

// watchdogVariables are the variables that override keys of the watchdog.
var watchdogVariables = []struct{ variable, key string }{
	{"AGENCY_WATCHDOG_POLL_INTERVAL", "watchdog.poll_interval_secs"},
	{"AGENCY_WATCHDOG_STUCK_THRESHOLD", "watchdog.stuck_threshold_intervals"},
	{"AGENCY_WATCHDOG_WORKER_TAGS", "watchdog.worker_tags"},
	{"AGENCY_WATCHDOG_ORCHESTRATOR_TAG", "watchdog.orchestrator_tag"},
}

// override applies these variables on top of the file. Commas separate the items of a list.
func (f *format) override(e environment) {
	for _, o := range watchdogVariables {
		text, variable := e.first(o.variable)
		if text == "" {
			continue
		}
		v := &document.Value{Kind: document.Text, Text: text}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			v = &document.Value{Kind: document.Integer, Text: strconv.FormatInt(n, 10)}
		}
		if o.key == "watchdog.worker_tags" {
			v = &document.Value{Kind: document.List}
			for item := range strings.SplitSeq(text, ",") {
				v.Items = append(v.Items, &document.Value{Kind: document.Text, Text: strings.TrimSpace(item)})
			}
		}
		if err := f.keys[o.key].set(v); err != nil {
			f.found.AddVariable(variable, err)
			continue
		}
		f.from[o.key] = variable
	}
}

// logLevels are the values of AGENCY_LOG.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logLevel sets the level that the environment selects, and returns its source.
func (f *format) logLevel(c *Config, e environment) (text, from string) {
	text, variable := e.first(envLog)
	if text == "" {
		return "info", fromDefault
	}
	level, ok := logLevels[text]
	if !ok {
		known := slices.Sorted(maps.Keys(logLevels))
		f.found.AddVariable(variable, document.Hinted(fmt.Errorf("must be debug, info, warn or error, not %s", quote(clip(text))), didYouMean(text, known)))
		return "", ""
	}
	c.LogLevel = level
	return text, variable
}

// valuesOf returns the values read from the tables of one kind.
func valuesOf[K comparable, T any](tables map[K]*T) map[K]T {
	values := map[K]T{}
	for name, table := range tables {
		values[name] = *table
	}
	return values
}
