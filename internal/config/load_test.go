package config_test

import (
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/config"
	"agency/internal/handle"
	"agency/internal/harness"
)

// write makes a file, with its folders, and returns its path.
func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads a file with this content, and returns its path too.
func load(t testing.TB, content string, env ...string) (*config.Config, string, error) {
	t.Helper()
	path := write(t, filepath.Join(t.TempDir(), "config.toml"), content)
	c, err := config.Load(path, append([]string{"HOME=/home/u"}, env...))
	return c, path, err
}

func mustLoad(t testing.TB, content string, env ...string) *config.Config {
	t.Helper()
	c, _, err := load(t, content, env...)
	if err != nil {
		t.Fatal(err, agency.AsError(err).Details)
	}
	return c
}

func mustFormat(t testing.TB, s string) handle.Format {
	t.Helper()
	f, err := handle.ParseFormat(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// same compares two configurations without the origins of their values. It returns the difference,
// or "".
func same(want, got *config.Config) string {
	return cmp.Diff(want, got,
		cmp.Comparer(func(a, b handle.Format) bool { return a == b }),
		cmp.FilterPath(func(p cmp.Path) bool {
			return strings.HasSuffix(p.String(), "origins") || p.String() == "Path"
		}, cmp.Ignore()),
		cmp.AllowUnexported(config.Config{}))
}

// wantRunners are all runners as the registry has them.
func wantRunners() map[agency.RunnerKind]config.Runner {
	runners := map[agency.RunnerKind]config.Runner{}
	for _, kind := range harness.Kinds() {
		runners[kind] = config.Runner{Exec: harness.Program(kind), DefaultArgs: []string{}}
	}
	return runners
}

func wantDefaults(t testing.TB) *config.Config {
	return &config.Config{
		Exists: true, Home: "/home/u/.agency", Socket: "/home/u/.agency/agencyd.sock", Resources: agency.AnyAmount(),
		LogLevel: slog.LevelInfo,
		Defaults: config.Defaults{Runner: "claude_code", Base: "HEAD"},
		IDs:      config.IDs{Format: mustFormat(t, "mmdd-slug-hash")},
		Runners:  wantRunners(),
		Custom:   map[string]config.Runner{},
		Logs:     config.Logs{MaxBytes: 1 << 30},
		Env:      config.Env{Deny: []string{}},
		Sandbox: config.Sandbox{
			Sandbox:         agency.Sandbox{Level: agency.SandboxWorktree, Network: agency.NetworkFull},
			SandboxSettings: agency.SandboxSettings{Read: []string{}, Write: []string{}, Env: []string{}, Hosts: []string{}},
		},
		Watchdog: config.Watchdog{
			StallThreshold: 15 * time.Minute, PollInterval: 30 * time.Second, StuckIntervals: 3,
			WorkerTags: []string{"worker"}, OrchestratorTag: "orchestrator", PreviewLines: 5, ErrorPatterns: []string{},
		},
		Landing:   agency.LandingSettings{Method: "squash", Uncommitted: "refuse", Checkout: "disjoint", After: "keep", Remote: "origin", Forge: "auto"},
		Queue:     config.Queue{Batch: 5, Parallel: 2, Approve: "user"},
		Stop:      config.Stop{Grace: 10 * time.Second},
		Session:   config.Session{StatusDir: ".agency/status"},
		DB:        config.DB{Backups: 7},
		Disk:      config.Disk{MinFree: 512 << 20},
		Worktrees: config.Worktrees{Standby: 1},
		MCP:       config.MCP{Allow: []string{}, MaxChildren: 32, MaxDepth: 3},
		Notify:    config.Notify{Channels: map[string]config.Channel{}},
		TUI:       config.TUI{Keys: map[string][]string{}, Views: map[string]string{}},
		Presets:   map[string]config.Preset{},
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	if diff := same(wantDefaults(t), mustLoad(t, "")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fullFile sets keys of every table, in all ways that TOML has.
const fullFile = `
defaults = { runner = "aider", base = "origin/main", headless = true }
ids.format = "{YYYYMMDD}-{hash}"
runners.codex = { exec = "/opt/codex", default_args = ["--full-auto"] }
[runners.custom]
"a.b".exec = "b"
[runners.custom.aider]
exec = "aider"
default_args = [
  "--file", "{prompt_file}", # comment
  "{worktree}/{run_id}", "${HOME}", "{\"json\": 1}",
]
[tmux]
socket = "agency"
[logs]
max_bytes = 0x1_0000
[env]
deny = ["AWS_*", "[A-Z]_TOKEN"]
[watchdog]
stall_threshold = "1h30m"
poll_interval_secs = 3600
stuck_threshold_intervals = 5
worker_tags = ["worker", "builder"]
orchestrator_tag = "boss"
worker_pattern = "-worker$"
output_preview_lines = 0
error_patterns = ['(?i)error: (quota|limit)', "^fatal"]
[stop]
grace = "0s"
[session]
status_dir = ".founder-mode/status"
[db]
backups = 0
[disk]
min_free = "3GiB"
[worktrees]
standby = 4
`

func TestFullFile(t *testing.T) {
	t.Parallel()
	got := mustLoad(t, fullFile)
	want := wantDefaults(t)
	want.Defaults = config.Defaults{Runner: "aider", Base: "origin/main", Headless: true}
	want.IDs.Format = mustFormat(t, "{YYYYMMDD}-{hash}")
	want.Runners["codex"] = config.Runner{Exec: "/opt/codex", DefaultArgs: []string{"--full-auto"}}
	want.Custom["a.b"] = config.Runner{Exec: "b", DefaultArgs: []string{}}
	want.Custom["aider"] = config.Runner{
		Exec: "aider", DefaultArgs: []string{"--file", "{prompt_file}", "{worktree}/{run_id}", "${HOME}", `{"json": 1}`},
	}
	want.Tmux.Socket = "agency"
	want.Logs.MaxBytes = 1 << 16
	want.Env.Deny = []string{"AWS_*", "[A-Z]_TOKEN"}
	want.Watchdog = config.Watchdog{
		StallThreshold: 90 * time.Minute, PollInterval: time.Hour, StuckIntervals: 5,
		WorkerTags: []string{"worker", "builder"}, OrchestratorTag: "boss", WorkerPattern: "-worker$", ErrorPatterns: []string{"(?i)error: (quota|limit)", "^fatal"},
	}
	want.Stop.Grace, want.DB.Backups, want.Disk.MinFree = 0, 0, 3<<30
	want.Worktrees.Standby = 4
	want.Session.StatusDir = ".founder-mode/status"
	if diff := same(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The example must be every key with its default, and its commented part must work too.
func TestExample(t *testing.T) {
	t.Parallel()
	got := mustLoad(t, config.SampleFile())
	if diff := same(wantDefaults(t), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, o := range got.Origins()[3:] {
		if !strings.HasPrefix(o.From, "config.toml:") {
			t.Errorf("the example lacks %s", o.Key)
		}
	}
	whole := regexp.MustCompile(`(?m)^# (\[.*\]|[a-z_]+ = .*)$`).ReplaceAllString(config.SampleFile(), "$1")
	custom := mustLoad(t, whole).Custom
	want := map[string]config.Runner{"aider": {Exec: "aider", DefaultArgs: []string{"--yes", "--message-file", "{prompt_file}"}}, "goose": {Exec: "goose", DefaultArgs: []string{"acp"}, Protocol: agency.ACP}}
	if diff := cmp.Diff(want, custom); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "[stop]\ngrace = \"90s\"\n[runners.custom.x]\nexec = \"x\\u001b\"\n",
		"AGENCY_HOME=/data", "AGENCY_LOG=debug", "AGENCY_WATCHDOG_POLL_INTERVAL=007",
		"AGENCY_WATCHDOG_STUCK_THRESHOLD=4", "AGENCY_WATCHDOG_WORKER_TAGS=worker, builder", "AGENCY_WATCHDOG_ORCHESTRATOR_TAG=boss")
	if c.LogLevel != slog.LevelDebug || c.Watchdog.PollInterval != 7*time.Second {
		t.Errorf("LogLevel = %v, PollInterval = %v", c.LogLevel, c.Watchdog.PollInterval)
	}
	want := []config.Origin{
		{"home", `"/data"`, "AGENCY_HOME"},
		{"socket", `"/data/agencyd.sock"`, "default"},
		{"log_level", `"debug"`, "AGENCY_LOG"},
		{"defaults.runner", `"claude_code"`, "default"},
		{"defaults.base", `"HEAD"`, "default"},
		{"defaults.headless", `false`, "default"},
		{"defaults.mode", `""`, "default"},
		{"ids.format", `"mmdd-slug-hash"`, "default"},
	}
	for _, kind := range harness.Kinds() {
		table := "runners." + string(kind)
		want = append(want, config.Origin{Key: table + ".exec", Value: strconv.Quote(harness.Program(kind)), From: "default"},
			config.Origin{Key: table + ".default_args", Value: "[]", From: "default"})
	}
	want = append(want, originsBelowRunners...)
	if diff := cmp.Diff(want, c.Origins()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// originsBelowRunners are the values of the configuration of TestOrigins that come after those of
// the runners.
var originsBelowRunners = []config.Origin{
	{"runners.custom.x.exec", `"x\u001B"`, "config.toml:4"},
	{"runners.custom.x.default_args", `[]`, "default"},
	{"runners.custom.x.protocol", `""`, "default"},
	{"tmux.socket", `""`, "default"},
	{"logs.max_bytes", `1073741824`, "default"},
	{"env.deny", `[]`, "default"},
	{"sandbox.level", `"worktree"`, "default"},
	{"sandbox.network", `"full"`, "default"},
	{"sandbox.image", `""`, "default"},
	{"sandbox.read", `[]`, "default"},
	{"sandbox.write", `[]`, "default"},
	{"sandbox.env", `[]`, "default"},
	{"sandbox.hosts", `[]`, "default"},
	{"resources.memory", `"none"`, "default"},
	{"resources.pids", `"none"`, "default"},
	{"resources.cpus", `"none"`, "default"},
	{"resources.disk", `"none"`, "default"},
	{"resources.tmp", `"none"`, "default"},
	{"resources.open_files", `"none"`, "default"},
	{"watchdog.stall_threshold", `"15m"`, "default"},
	{"watchdog.poll_interval_secs", `7`, "AGENCY_WATCHDOG_POLL_INTERVAL"},
	{"watchdog.stuck_threshold_intervals", `4`, "AGENCY_WATCHDOG_STUCK_THRESHOLD"},
	{"watchdog.worker_tags", `["worker", "builder"]`, "AGENCY_WATCHDOG_WORKER_TAGS"},
	{"watchdog.orchestrator_tag", `"boss"`, "AGENCY_WATCHDOG_ORCHESTRATOR_TAG"},
	{"watchdog.worker_pattern", `""`, "default"},
	{"watchdog.output_preview_lines", `5`, "default"},
	{"watchdog.error_patterns", `[]`, "default"},
	{"landing.target", `""`, "default"},
	{"landing.method", `"squash"`, "default"},
	{"landing.uncommitted", `"refuse"`, "default"},
	{"landing.checkout", `"disjoint"`, "default"},
	{"landing.after", `"keep"`, "default"},
	{"landing.remote", `"origin"`, "default"},
	{"forge.kind", `"auto"`, "default"},
	{"queue.batch", "5", "default"},
	{"queue.parallel", "2", "default"},
	{"queue.approve", `"user"`, "default"},
	{"stop.grace", `"1m30s"`, "config.toml:2"},
	{"session.status_dir", `".agency/status"`, "default"},
	{"db.backups", `7`, "default"},
	{"disk.min_free", `"512m"`, "default"},
	{"worktrees.standby", "1", "default"},
	{"mcp.allow", "[]", "default"},
	{"mcp.max_children", "32", "default"},
	{"mcp.max_depth", "3", "default"},
	{"notify.quiet_hours", `""`, "default"},
}

// What config show prints must itself be a configuration that means the same.
func TestOriginsReadBack(t *testing.T) {
	t.Parallel()
	first := mustLoad(t, `
[runners.custom."x.y"]
exec = "/a \" \\ \u0007 é \U0001F642"
default_args = ["\n", "#", "'"]
[watchdog]
stall_threshold = "1h0m1s"
[stop]
grace = "1h"
`)
	var b strings.Builder
	for _, o := range first.Origins()[3:] {
		b.WriteString(o.Key + " = " + o.Value + "\n")
	}
	if diff := same(first, mustLoad(t, b.String())); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", b.String(), diff)
	}
}

func TestWhichFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, base string) string {
		return write(t, filepath.Join(dir, name), "[defaults]\nbase = \""+base+"\"\n")
	}
	flag, variable, old := file("flag.toml", "flag"), file("variable.toml", "variable"), file("old.toml", "old")
	file("xdg/agency/config.toml", "xdg")
	file("home/.config/agency/config.toml", "home")
	all := []string{"HOME=" + dir + "/home", "XDG_CONFIG_HOME=" + dir + "/xdg", "agency_CONFIG=" + old, "AGENCY_CONFIG=" + variable}
	for _, tt := range []struct {
		explicit string
		env      []string
		want     string
	}{
		{flag, all, "flag"},
		{"", all, "variable"},
		{"", append(all, "AGENCY_CONFIG="), "old"},
		{"", all[:2], "xdg"},
		{"", append(all[:1:1], "XDG_CONFIG_HOME=relative"), "home"},
		{"", all[:1], "home"},
		{"", []string{"HOME=" + dir}, "HEAD"},
		{"", []string{"HOME=" + flag}, "HEAD"}, // a home that is not a directory
		{"", append(all[:1:1], "XDG_CONFIG_HOME="+dir+"/other"), "HEAD"},
	} {
		c, err := config.Load(tt.explicit, tt.env)
		if err != nil || c.Defaults.Base != tt.want || c.Exists != (tt.want != "HEAD") {
			t.Errorf("Load(%q, %q) = %+v, %v, want %s", tt.explicit, tt.env, c, err, tt.want)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.toml")
	large := write(t, filepath.Join(dir, "large.toml"), strings.Repeat("#\n", 1<<19)+"#")
	dangling, link := filepath.Join(dir, "home/.config/agency/config.toml"), filepath.Join(dir, "link.toml")
	if err := os.MkdirAll(filepath.Dir(dangling), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, target := range map[string]string{dangling: missing, link: write(t, filepath.Join(dir, "real.toml"), "[stop]\ngrace = \"1s\"")} {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		explicit string
		env      []string
		path     string
	}{
		"flag":      {missing, nil, missing},
		"variable":  {"", []string{"AGENCY_CONFIG=" + missing}, missing},
		"directory": {dir, nil, dir},
		"device":    {os.DevNull, nil, os.DevNull},
		"large":     {large, nil, large},
		"dangling":  {"", []string{"HOME=" + dir + "/home"}, dangling}, // the user intends a configuration
	} {
		_, err := config.Load(tt.explicit, append([]string{"HOME=" + dir}, tt.env...))
		if !agency.IsCode(err, agency.CodeConfigInvalid) || !strings.HasPrefix(err.Error(), tt.path+": ") || agency.AsError(err).Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := config.Load(link, []string{"HOME=" + dir})
	if err != nil || c.Stop.Grace != time.Second || c.Path != link {
		t.Errorf("a linked file: %+v, %v", c, err)
	}
}

func TestHomeAndSocket(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 120)
	fits := "/" + strings.Repeat("x", 90)
	for _, tt := range []struct {
		env          []string
		home, socket string
	}{
		{[]string{"HOME=/h"}, "/h/.agency", "/h/.agency/agencyd.sock"},
		{[]string{"HOME=/h", "AGENCY_HOME=/a/../b/"}, "/b", "/b/agencyd.sock"},
		{[]string{"HOME=/h", "AGENCY_SOCKET=/s"}, "/h/.agency", "/s"},
		{[]string{"HOME=/h", "agency_SOCKET=/old"}, "/h/.agency", "/old"},
		{[]string{"HOME=/h", "agency_SOCKET=/old", "AGENCY_SOCKET=/s"}, "/h/.agency", "/s"},
		{[]string{"AGENCY_HOME=" + fits, "AGENCY_CONFIG="}, fits, fits + "/agencyd.sock"},
	} {
		c, err := config.Load("", append(tt.env, "XDG_CONFIG_HOME="+t.TempDir()))
		if err != nil || c.Home != tt.home || c.Socket != tt.socket || c.SocketNote != "" {
			t.Errorf("%q: %+v, %v", tt.env, c, err)
		}
	}

	xdg := "XDG_CONFIG_HOME=" + t.TempDir()
	c, err := config.Load("", []string{"AGENCY_HOME=" + long, xdg})
	if err != nil || !regexp.MustCompile(`^/tmp/agency-[0-9]+/[0-9a-f]{16}\.sock$`).MatchString(c.Socket) || !strings.Contains(c.SocketNote, c.Socket) {
		t.Errorf("a long home: %+v, %v", c, err)
	}
	if other, err := config.Load("", []string{"AGENCY_HOME=" + long + "y", xdg}); err != nil || other.Socket == c.Socket {
		t.Errorf("two homes share the socket %s (%v)", c.Socket, err)
	}

	for env, code := range map[string]agency.Code{
		"AGENCY_HOME=relative":    agency.CodeConfigInvalid,
		"AGENCY_SOCKET=relative":  agency.CodeSocketPathInvalid,
		"AGENCY_SOCKET=" + long:   agency.CodeSocketPathInvalid,
		"agency_SOCKET=" + long:   agency.CodeSocketPathInvalid,
		"agency_SOCKET=./agencyd": agency.CodeSocketPathInvalid,
	} {
		name, _, _ := strings.Cut(env, "=")
		_, err := config.Load("", []string{"HOME=/h", xdg, env})
		if !agency.IsCode(err, code) || !strings.HasPrefix(err.Error(), name+" ") || agency.AsError(err).Hint == "" {
			t.Errorf("%s: %v", env, err)
		}
	}
}

func TestHomeOfTheUserDatabase(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		t.Skip("the user database knows no home")
	}
	for _, env := range [][]string{nil, {"HOME="}, {"HOME=relative"}} {
		c, err := config.Load("", append(env, "XDG_CONFIG_HOME="+t.TempDir()))
		if err != nil || c.Home != filepath.Join(u.HomeDir, ".agency") {
			t.Errorf("%q: %+v, %v", env, c, err)
		}
	}
}
