package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"agency"
)

// format is the file format bound to one Config: every table and key that may be written, and where its value goes.
type format struct {
	keys   map[string]key
	order  []string            // of the keys
	tables map[string][]string // the names directly in a table; that of the whole file is ""

	defaultRunner *string
	kinds         map[agency.RunnerKind]*Runner
	custom        map[string]*Runner
	channels      map[string]*Channel
	presets       map[string]*Preset

	seen    map[string]position // where a key or a table was met first
	from    map[string]string   // what set a key
	refused map[string]bool     // keys and tables with something wrong: it is said once, however often one is used
}

const customTable = "runners.custom"

func emptyFormat() *format {
	return &format{
		keys: map[string]key{}, tables: map[string][]string{}, seen: map[string]position{}, from: map[string]string{}, refused: map[string]bool{},
	}
}

// newFormat binds the format to c, with a table for each custom runner of these names.
func newFormat(c *Config, custom []string) *format {
	f := emptyFormat()
	f.kinds, f.custom, f.defaultRunner = map[agency.RunnerKind]*Runner{}, map[string]*Runner{}, &c.Defaults.Runner
	f.table("", "defaults",
		textKey("runner", &c.Defaults.Runner, checkText),
		textKey("base", &c.Defaults.Base, checkRef),
		boolKey("headless", &c.Defaults.Headless),
	)
	f.table("", "ids", formatKey("format", &c.IDs.Format))
	f.table("", "runners")
	for _, kind := range RunnerKinds() {
		r := c.Runners[kind]
		f.kinds[kind] = &r
		f.table("runners", string(kind), runnerKeys(&r, checkText)...)
	}
	f.table("runners", "custom")
	for _, name := range custom {
		r := Runner{DefaultArgs: []string{}}
		f.custom[name] = &r
		f.table(customTable, name, runnerKeys(&r, checkCustomArg)...)
	}
	f.table("", "tmux", textKey("socket", &c.Tmux.Socket, checkTmuxSocket))
	f.table("", "logs", numberKey("max_bytes", &c.Logs.MaxBytes, 1, 1<<16, 1<<50))
	f.table("", "env", listKey("deny", &c.Env.Deny, checkPattern))
	f.table("", "watchdog",
		durationKey("stall_threshold", &c.Watchdog.StallThreshold, time.Second, 7*24*time.Hour),
		numberKey("poll_interval_secs", &c.Watchdog.PollInterval, time.Second, 1, 3600),
		numberKey("stuck_threshold_intervals", &c.Watchdog.StuckIntervals, 1, 1, 10_000),
		listKey("worker_tags", &c.Watchdog.WorkerTags, checkTag),
		textKey("orchestrator_tag", &c.Watchdog.OrchestratorTag, checkTag),
		textKey("worker_pattern", &c.Watchdog.WorkerPattern, checkExpression),
		numberKey("output_preview_lines", &c.Watchdog.PreviewLines, 1, 0, 100),
		patternsKey("error_patterns", &c.Watchdog.ErrorPatterns),
	)
	f.table("", "stop", durationKey("grace", &c.Stop.Grace, 0, time.Hour))
	f.table("", "session", textKey("status_dir", &c.Session.StatusDir, checkStatusDir))
	f.table("", "db", numberKey("backups", &c.DB.Backups, 1, 0, 1000))
	f.table("", "disk", sizeKey("min_free", &c.Disk.MinFree))
	f.table("", "mcp",
		listKey("allow", &c.MCP.Allow, checkAllowance),
		numberKey("max_children", &c.MCP.MaxChildren, 1, 0, 10_000),
		numberKey("max_depth", &c.MCP.MaxDepth, 1, 0, 100),
	)
	return f
}

func runnerKeys(r *Runner, checkArg func(string) error) []key {
	return []key{textKey("exec", &r.Exec, checkExec), listKey("default_args", &r.DefaultArgs, checkArg)}
}

// table makes a table and its keys known.
func (f *format) table(parent, name string, keys ...key) {
	f.tables[parent] = append(f.tables[parent], name)
	table := dotted(parent, name)
	f.tables[table] = nil
	for _, k := range keys {
		f.tables[table] = append(f.tables[table], k.name)
		full := dotted(table, k.name)
		f.keys[full] = k
		f.order = append(f.order, full)
	}
}

// customNames are the names of custom runners in a document, those that are allowed.
func customNames(entries []entry) []string {
	names := map[string]bool{}
	for _, e := range entries {
		if len(e.path) > 2 && e.path[0].name == "runners" && e.path[1].name == "custom" && checkCustomName(e.path[2].name) == nil {
			names[e.path[2].name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func checkCustomName(name string) error {
	if name == string(agency.Custom) || slices.Contains(RunnerKinds(), agency.RunnerKind(name)) {
		return agency.Errorf(agency.CodeUsage, "the runner name %q is that of a kind", name).WithHint("choose another name")
	}
	return agency.CheckWord("runner name", name)
}

// read takes over what a document says, and returns what is wrong with it.
func (f *format) read(entries []entry, file string) []problem {
	var found problems
	for _, e := range entries {
		name, at, bad := f.take(e)
		switch {
		case bad != nil && !f.refused[name]:
			f.refused[name] = true
			bad.at = at
			found.add(*bad)
		case bad == nil:
			f.from[name] = file + ":" + strconv.Itoa(at.line)
		}
	}
	return found
}

// take takes over one entry. It returns the name of the key or table that decided, and its place.
func (f *format) take(e entry) (name string, at position, bad *problem) {
	for i, p := range e.path {
		parent := name
		name, at = dotted(parent, p.name), p.at
		v := e.value
		if i < len(e.path)-1 {
			v = value{kind: unstable.Table}
		}
		k, isKey := f.keys[name]
		_, isTable := f.tables[name]
		switch {
		case isTable && i < len(e.path)-1:
			continue
		case isTable && v.kind != unstable.Table && v.kind != unstable.InlineTable:
			return name, at, &problem{text: fmt.Sprintf("%s must be a table, not %s", named(name), v.words())}
		case isTable:
			return name, at, f.first("table", name, at)
		case isKey:
			if err := k.set(v); err != nil {
				bad = &problem{text: named(name) + " " + err.Error()}
				if h := (hinted{}); errors.As(err, &h) {
					bad.hint = h.hint
				}
				return name, at, bad
			}
			return name, at, f.first("key", name, at)
		default:
			return name, at, f.unknown(parent, p.name)
		}
	}
	return name, at, nil
}

// first refuses a key or a table that was there before.
func (f *format) first(what, name string, at position) *problem {
	if before, ok := f.seen[name]; ok {
		return &problem{text: fmt.Sprintf("the %s %s is there twice, first on line %d", what, named(name), before.line)}
	}
	f.seen[name] = at
	return nil
}

// unknown says that a table has no such key, and which one was meant.
func (f *format) unknown(table, name string) *problem {
	check := map[string]func(string) error{customTable: checkCustomName, channelTable: checkChannelName, presetTable: checkPresetName}[table]
	if check != nil {
		e := agency.AsError(check(clip(name)))
		return &problem{text: e.Message, hint: e.Hint}
	}
	bad := &problem{text: "unknown key " + named(dotted(table, name))}
	if near := agency.Nearest(name, f.tables[table]); near != "" {
		bad.hint = didYouMean(dotted(table, near))
	} else {
		bad.hint = "known here: " + strings.Join(f.tables[table], ", ")
	}
	return bad
}

// checkWhole checks what no single key can know.
func (f *format) checkWhole() []problem {
	var found problems
	names := slices.Clone(f.tables["runners"])
	names = slices.DeleteFunc(names, func(s string) bool { return s == "custom" })
	names = append(names, f.tables[customTable]...)
	if !slices.Contains(names, *f.defaultRunner) && !f.refused["defaults.runner"] {
		bad := problem{at: f.seen["defaults.runner"], text: fmt.Sprintf(`"defaults.runner" is %s, and there is no such runner`, quote(clip(*f.defaultRunner)))}
		if bad.hint = didYouMean(agency.Nearest(*f.defaultRunner, names)); bad.hint == "" {
			bad.hint = "known here: " + strings.Join(names, ", ")
		}
		found.add(bad)
	}
	for _, name := range f.tables[customTable] {
		table := dotted(customTable, name)
		if exec := dotted(table, "exec"); f.custom[name].Exec == "" && !f.refused[exec] && !f.refused[table] {
			at := cmp.Or(f.seen[table], f.seen[dotted(table, "default_args")])
			found.add(problem{at: at, text: named(table) + " has no exec", hint: `add the program: exec = "` + name + `"`})
		}
	}
	return found
}

// origins are all keys with their values.
func (f *format) origins() []Origin {
	var all []Origin
	for _, name := range f.order {
		from := f.from[name]
		if from == "" {
			from = fromDefault
		}
		all = append(all, Origin{Key: name, Value: f.keys[name].show(), From: from})
	}
	return all
}

var bareRule = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// dotted is the name of a key in a table, with quotes where TOML needs them, so that no two keys share one.
func dotted(table, name string) string {
	if !bareRule.MatchString(name) {
		name = quote(name)
	}
	if table == "" {
		return name
	}
	return table + "." + name
}

// named quotes the name of a key for a message.
func named(name string) string { return strconv.Quote(clip(name)) }
