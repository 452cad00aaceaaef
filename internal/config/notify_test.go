package config_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/config"
	"agency/internal/duration"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	got := mustLoad(t, `
[notify]
quiet_hours = "22:00-07:00"
channels.desk = { kind = "desktop", kinds = ["worker.error"], tags = ["worker"], urgent = ["worker.lost"] }
[notify.channels.hook]
kind = "webhook"
url = "http://10.0.0.1:8080/x?y=z"
secret_env = "HOOK_SECRET"
allow_private = true
[notify.channels.tell]
kind = "command"
argv = ["tell-me", "--now", ""]
[notify.channels.bell]
kind = "bell"
`).Notify
	none := []string{}
	want := config.Notify{QuietHours: duration.Hours{From: 22 * 60, To: 7 * 60}, Channels: map[string]config.Channel{
		"desk": {Kind: "desktop", Kinds: []string{"worker.error"}, Tags: []string{"worker"}, Urgent: []string{"worker.lost"}, Argv: none},
		"hook": {
			Kind: "webhook", Kinds: none, Tags: none, Urgent: none, Argv: none,
			URL: "http://10.0.0.1:8080/x?y=z", SecretEnv: "HOOK_SECRET", AllowPrivate: true,
		},
		"tell": {Kind: "command", Kinds: none, Tags: none, Urgent: none, Argv: []string{"tell-me", "--now", ""}},
		"bell": {Kind: "bell", Kinds: none, Tags: none, Urgent: none, Argv: none},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The channels in the example are valid when they are uncommented.
func TestNotifyExample(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile(`(?m)^# (\[.*\]|[a-z_]+ = .*)$`).ReplaceAllString(config.SampleFile(), "$1")
	channels := mustLoad(t, whole).Notify.Channels
	if len(channels) != 3 || channels["desk"].Kind != "desktop" || channels["hook"].SecretFile == "" || len(channels["tell"].Argv) != 2 {
		t.Errorf("%+v", channels)
	}
}

// The printed form of a channel can be read back, and shows only those parts of its URL that are
// not secret.
func TestNotifyOrigins(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
[notify]
quiet_hours = "22:00-07:00"
[notify.channels.hook]
kind = "webhook"
url = "https://hooks.example.com:444/services/SECRET?token=SECRET"
secret_file = "/run/hook"
[notify.channels.tell]
kind = "command"
argv = ["tell-me"]
`)
	var b strings.Builder
	for _, o := range c.Origins()[3:] {
		b.WriteString(o.Key + " = " + o.Value + "\n")
		if strings.Contains(o.Value, "SECRET") {
			t.Errorf("%s shows a secret: %s", o.Key, o.Value)
		}
		if o.Key == "notify.channels.hook.url" && (o.Value != `"https://hooks.example.com:444/…"` || o.From != "config.toml:6") {
			t.Errorf("%+v", o)
		}
	}
	again := mustLoad(t, b.String()).Notify
	hook := again.Channels["hook"]
	hook.URL = c.Notify.Channels["hook"].URL
	again.Channels["hook"] = hook
	if diff := cmp.Diff(c.Notify, again); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", b.String(), diff)
	}
}

func TestNotifyProblems(t *testing.T) {
	t.Parallel()
	const webhook, command = "[notify.channels.x]\nkind = \"webhook\"\n", "[notify.channels.x]\nkind = \"command\"\n"
	for _, tt := range []struct {
		file string
		want string // after the path, with the hint in brackets
	}{
		{"[notify]\nquiet_hours = \"10pm\"", `2:1: "notify.quiet_hours" must be hours of the day such as "22:00-07:00", not "10pm" []`},
		{"[notify]\nquiet_hours = 7", `2:1: "notify.quiet_hours" must be text, not 7 []`},
		{"[notify]\nquiet = \"\"", `2:1: unknown key "notify.quiet" [did you mean "notify.quiet_hours"?]`},
		{"[notify.channels.X]\nkind = \"bell\"", `1:18: the channel name "X" is not allowed [a channel name has 1 to 40 characters: lower-case letters, digits, dots, dashes and underscores]`},
		{"[notify.channels.x]\n", `1:18: "notify.channels.x" has no kind [add one: kind = "desktop", "webhook", "command" or "bell"]`},
		{"[notify]\nchannels.x.tags = []", `2:10: "notify.channels.x" has no kind [add one: kind = "desktop", "webhook", "command" or "bell"]`},
		{"[notify.channels.x]\nkind = \"dekstop\"", `2:1: "notify.channels.x.kind" must be desktop, webhook, command or bell, not "dekstop" [did you mean "desktop"?]`},
		{"[notify.channels.x]\nkind = \"\"", `2:1: "notify.channels.x.kind" must be desktop, webhook, command or bell, not "" []`},
		{"[notify.channels.x]\nkind = \"bell\"\nkinds = [\"worker.eror\"]", `3:1: "notify.channels.x.kinds" is wrong at item 1: it must be a kind of alert, not "worker.eror" [did you mean "worker.error"?]`},
		{"[notify.channels.x]\nkind = \"bell\"\nurgent = [\"all\"]", `3:1: "notify.channels.x.urgent" is wrong at item 1: it must be a kind of alert, not "all" [the kinds are worker.lost, worker.error, worker.needs_input, worker.complete, worker.stuck, session.paused, session.waiting, session.failed, landing.conflict, landing.failed, landing.held, host.disk, session.complete, session.cancelled]`},
		{"[notify.channels.x]\nkind = \"bell\"\nurl = \"https://example.com\"", `3:1: "notify.channels.x.url" is for a webhook, and the channel is a bell []`},
		{webhook + "argv = [\"x\"]\nurl = \"https://example.com\"", `3:1: "notify.channels.x.argv" is for a command, and the channel is a webhook []`},
		{webhook, `1:18: "notify.channels.x" has no url [add it: url = "https://..."]`},
		{webhook + "url = \"https://me:SECRET@example.com\"", `3:1: "notify.channels.x.url" must hold no user or password []`},
		{webhook + "url = \"ftp://example.com/SECRET\"", `3:1: "notify.channels.x.url" must be a URL such as https://example.com/hook []`},
		{webhook + "url = \"https://\\u0000SECRET\"", `3:1: "notify.channels.x.url" must be a URL such as https://example.com/hook []`},
		{webhook + "url = \"http://example.com/SECRET\"", `3:1: "notify.channels.x.url" must begin with https: [http is for addresses of your own network: allow_private = true]`},
		{webhook + "url = \"https://example.com\"\nsecret_env = \"A B\"", `4:1: "notify.channels.x.secret_env" must be the name of a variable, not "A B" []`},
		{webhook + "url = \"https://example.com\"\nsecret_file = \"secret\"", `4:1: "notify.channels.x.secret_file" must be an absolute path, not "secret" []`},
		{webhook + "url = \"https://example.com\"\nsecret_env = \"A\"\nsecret_file = \"/s\"", `5:1: "notify.channels.x" has two secrets, secret_env and secret_file [drop one]`},
		{command, `1:18: "notify.channels.x" has no argv [add the program and its arguments: argv = ["/usr/local/bin/tell-me"]]`},
		{command + "argv = [\"./tell\"]", `3:1: "notify.channels.x.argv" is wrong at item 1: it must be the name of a program or an absolute path, not "./tell" []`},
		{command + "argv = [\"\"]", `3:1: "notify.channels.x.argv" is wrong at item 1: it must not be empty []`},
		{command + "argv = \"tell me\"", `3:1: "notify.channels.x.argv" must be a list of texts, not text []`},
	} {
		_, path, err := load(t, tt.file)
		if err == nil {
			t.Errorf("%q is taken", tt.file)
			continue
		}
		e := agency.AsError(err)
		if got, want := e.Message+" ["+e.Hint+"]", path+":"+tt.want; got != want || e.Code != agency.CodeConfigInvalid {
			t.Errorf("%q\n got %s\nwant %s", tt.file, got, want)
		}
		if n := len(e.Details["problems"].([]string)); n != 1 || strings.Contains(e.Message, "SECRET") {
			t.Errorf("%q: %d problems: %q", tt.file, n, e.Details["problems"])
		}
	}
}
