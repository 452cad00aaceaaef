package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/document"
)

// format is the file format bound to one Config: every valid table and key, and the target of its
// value.
type format struct {
	keys   map[string]key
	order  []string            // of the keys
	tables map[string][]string // the names directly in a table; that of the whole file is ""

	defaultRunner *string
	kinds         map[agency.RunnerKind]*Runner
	custom        map[string]*Runner
	channels      map[string]*Channel
	presets       map[string]*Preset
	chosen        map[string]*[]string // keys of the dashboard
	views         map[string]*string   // filters of its list

	found   *document.Problems
	seen    map[string]document.Position // the place of each key or table
	from    map[string]string            // the source of each key's value
	refused map[string]bool              // invalid keys and tables: each is reported once, however often it is used
}

const customTable = "runners.custom"

// emptyFormat returns the format of a file at path.
func emptyFormat(path string) *format {
	return &format{
		keys: map[string]key{}, tables: map[string][]string{}, found: &document.Problems{Name: path},
		seen: map[string]document.Position{}, from: map[string]string{}, refused: map[string]bool{},
	}
}

// newFormat binds the format to c, with a table for each custom runner of these names.
func newFormat(c *Config, custom []string) *format {
	f := emptyFormat(c.Path)
	f.kinds, f.custom, f.defaultRunner = map[agency.RunnerKind]*Runner{}, map[string]*Runner{}, &c.Defaults.Runner
	f.table("", "defaults",
		textKey("runner", &c.Defaults.Runner, checkText),
		textKey("base", &c.Defaults.Base, checkRef),
		boolKey("headless", &c.Defaults.Headless),
		modeKey(&c.Defaults.Mode),
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
		f.table(customTable, name, append(runnerKeys(&r, checkCustomArg), textKey("protocol", &r.Protocol, checkProtocol))...)
	}
	f.table("", "tmux", textKey("socket", &c.Tmux.Socket, checkTmuxSocket))
	f.table("", "logs", numberKey("max_bytes", &c.Logs.MaxBytes, 1, 1<<16, 1<<50))
	f.table("", "env", listKey("deny", &c.Env.Deny, checkPattern))
	f.table("", "sandbox",
		levelKey("level", &c.Sandbox.Level),
		networkKey("network", &c.Sandbox.Network),
		textKey("image", &c.Sandbox.Image, checkImage),
		listKey("read", &c.Sandbox.Read, checkSandboxPath),
		listKey("write", &c.Sandbox.Write, checkSandboxPath),
		listKey("env", &c.Sandbox.Env, checkPattern),
		listKey("hosts", &c.Sandbox.Hosts, checkHost),
	)
	f.table("", "resources", resourcesKeys(&c.Resources)...)
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
	f.table("", "landing", landingKeys(&c.Landing)...)
	f.table("", "forge", forgeKey(&c.Landing.Forge))
	f.table("", "queue", numberKey("batch", &c.Queue.Batch, 1, 1, 100), numberKey("parallel", &c.Queue.Parallel, 1, 1, 32), textKey("approve", &c.Queue.Approve, oneOf(ApproveUser, ApproveAgents)))
	f.table("", "stop", durationKey("grace", &c.Stop.Grace, 0, time.Hour))
	f.table("", "session", textKey("status_dir", &c.Session.StatusDir, checkStatusDir))
	f.table("", "db", numberKey("backups", &c.DB.Backups, 1, 0, 1000))
	f.table("", "disk", sizeKey("min_free", &c.Disk.MinFree))
	f.table("", "worktrees", numberKey("standby", &c.Worktrees.Standby, 1, 0, agency.MostStandbys))
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

// table registers a table and its keys.
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

// namesIn returns the names of a table's own tables that check accepts.
func namesIn(table *document.Value, check func(name string) error) []string {
	names := map[string]bool{}
	if table != nil {
		for _, field := range table.Fields {
			if check(field.Key) == nil {
				names[field.Key] = true
			}
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

// read reads the values of a table of the document.
func (f *format) read(name string, table *document.Value) {
	under := func(key string) string { return named(dotted(name, key)) }
	for _, field := range f.found.Fields(table, f.tables[name], under, func(field *document.Field) { f.unknown(name, field) }) {
		full, v := dotted(name, field.Key), field.Value
		f.seen[full] = field.At
		k, isKey := f.keys[full]
		var err error
		switch {
		case isKey:
			err = k.set(v)
		case v.Kind != document.Table:
			err = fmt.Errorf("must be a table, not %s", v.Words())
		default:
			f.read(full, v)
		}
		if err != nil {
			f.refused[full] = true
			f.found.Refuse(v, named(full), err)
			continue
		}
		f.from[full] = filepath.Base(f.found.Name) + ":" + strconv.Itoa(field.At.Line)
	}
}

// unknown reports an unknown key of a table, with the nearest known one.
func (f *format) unknown(table string, field *document.Field) {
	check := map[string]func(string) error{customTable: checkCustomName, channelTable: checkChannelName, presetTable: checkPresetName, keysTable: checkKeyName, viewsTable: checkViewName}[table]
	if check != nil {
		e := agency.AsError(check(clip(field.Key)))
		f.found.Add(field.At, e.Hint, "%s", e.Message)
		return
	}
	under := func(key string) string { return named(dotted(table, key)) }
	f.found.Add(field.At, nearestOrAll(field.Key, f.tables[table], under), "unknown key %s", under(field.Key))
}

// nearestOrAll returns a hint for an unknown word.
func nearestOrAll(word string, known []string, shown func(string) string) string {
	if hint := document.DidYouMean(word, known, shown); hint != "" {
		return hint
	}
	return "known here: " + strings.Join(known, ", ")
}

// runnerNames returns all runners that the file may name.
func (f *format) runnerNames() []string {
	names := slices.DeleteFunc(slices.Clone(f.tables["runners"]), func(s string) bool { return s == "custom" })
	return append(names, f.tables[customTable]...)
}

// checkWhole checks what concerns more than one key.
func (f *format) checkWhole() {
	names := f.runnerNames()
	if !slices.Contains(names, *f.defaultRunner) && !f.refused["defaults.runner"] {
		f.found.Add(f.seen["defaults.runner"], nearestOrAll(*f.defaultRunner, names, named),
			`"defaults.runner" is %s, which is not a runner`, quote(clip(*f.defaultRunner)))
	}
	for _, name := range f.tables[customTable] {
		table := dotted(customTable, name)
		if exec := dotted(table, "exec"); f.custom[name].Exec == "" && !f.refused[exec] && !f.refused[table] {
			f.found.Add(f.seen[table], `add the program: exec = "`+name+`"`, "%s has no exec", named(table))
		}
	}
}

// origins returns all keys with their values.
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

var bareRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// dotted returns the name of a key in a table, with quotes where TOML needs them, so that no two
// keys share a name.
func dotted(table, name string) string {
	if !bareRule().MatchString(name) {
		name = quote(name)
	}
	if table == "" {
		return name
	}
	return table + "." + name
}

// named quotes the name of a key for a message.
func named(name string) string { return strconv.Quote(clip(name)) }

// didYouMean returns a question for the known word nearest to the written one, or "" when none is
// near.
func didYouMean(word string, known []string) string { return document.DidYouMean(word, known, named) }
