package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
	"agency/internal/document"
	"agency/internal/duration"
)

// Notify holds the settings for notices outside of agency.
type Notify struct {
	QuietHours duration.Hours     // in local time: notices that are not urgent wait for their end
	Channels   map[string]Channel // by name; never nil
}

// Channel is one way to notify the user, with a filter. Its kind decides which fields matter.
type Channel struct {
	Kind   string   // one of the Channel constants
	Kinds  []string // only alerts of these kinds; empty is all
	Tags   []string // only about runs with one of these; empty is all
	Urgent []string // kinds that do not wait for the end of the quiet hours

	// For a webhook. At most one of the secrets is set: the name of a variable of the daemon, or an
	// absolute path.
	URL          string // may hold a secret itself
	SecretEnv    string
	SecretFile   string
	AllowPrivate bool

	Argv []string // of a command
}

// The kinds of channels.
const (
	ChannelDesktop = "desktop"
	ChannelWebhook = "webhook"
	ChannelCommand = "command"
	ChannelBell    = "bell"
)

var channelKinds = []string{ChannelDesktop, ChannelWebhook, ChannelCommand, ChannelBell}

const channelTable = "notify.channels"

// addNotify binds the table for notices to c, with one table for each channel of these names.
func (f *format) addNotify(c *Config, names []string) {
	f.channels = map[string]*Channel{}
	f.table("", "notify", hoursKey("quiet_hours", &c.Notify.QuietHours))
	f.table("notify", "channels")
	for _, name := range names {
		ch := &Channel{Kinds: []string{}, Tags: []string{}, Urgent: []string{}, Argv: []string{}}
		f.channels[name] = ch
		f.table(channelTable, name,
			textKey("kind", &ch.Kind, checkChannelKind),
			listKey("kinds", &ch.Kinds, checkAlertKind),
			listKey("tags", &ch.Tags, checkTag),
			listKey("urgent", &ch.Urgent, checkAlertKind),
			urlKey("url", &ch.URL),
			textKey("secret_env", &ch.SecretEnv, checkVariable),
			textKey("secret_file", &ch.SecretFile, checkSecretFile),
			boolKey("allow_private", &ch.AllowPrivate),
			listKey("argv", &ch.Argv, checkText),
		)
	}
}

func checkChannelName(name string) error { return agency.CheckWord("channel name", name) }

// checkChannels checks what concerns more than one key of a channel.
func (f *format) checkChannels() {
	for _, name := range slices.Sorted(maps.Keys(f.channels)) {
		table, ch := dotted(channelTable, name), f.channels[name]
		about := func(k, text, hint string) {
			if full := dotted(table, k); !f.refused[full] && !f.refused[table] {
				f.found.Add(cmp.Or(f.seen[full], f.seen[table]), hint, "%s", text)
			}
		}
		if ch.Kind == "" {
			about("kind", named(table)+" has no kind", `add one: kind = "desktop", "webhook", "command" or "bell"`)
			continue
		}
		for _, k := range []struct {
			name, of string
			set      bool
		}{
			{"url", ChannelWebhook, ch.URL != ""},
			{"secret_env", ChannelWebhook, ch.SecretEnv != ""},
			{"secret_file", ChannelWebhook, ch.SecretFile != ""},
			{"allow_private", ChannelWebhook, ch.AllowPrivate},
			{"argv", ChannelCommand, len(ch.Argv) > 0},
		} {
			if k.set && k.of != ch.Kind {
				about(k.name, fmt.Sprintf("%s is for a %s, and the channel is a %s", named(dotted(table, k.name)), k.of, ch.Kind), "")
			}
		}
		switch ch.Kind {
		case ChannelWebhook:
			if ch.URL == "" {
				about("url", named(table)+" has no url", `add it: url = "https://..."`)
			} else if !ch.AllowPrivate && !strings.HasPrefix(ch.URL, "https:") {
				about("url", named(dotted(table, "url"))+" must begin with https:", "http is for addresses of your own network: allow_private = true")
			}
			if ch.SecretEnv != "" && ch.SecretFile != "" {
				about("secret_file", named(table)+" has two secrets, secret_env and secret_file", "drop one")
			}
		case ChannelCommand:
			if len(ch.Argv) == 0 {
				about("argv", named(table)+" has no argv", `add the program and its arguments: argv = ["/usr/local/bin/tell-me"]`)
			} else if err := checkProgram(ch.Argv[0]); err != nil {
				about("argv", named(dotted(table, "argv"))+" is wrong at item 1: it "+err.Error(), "")
			}
		}
	}
}

func hoursKey(name string, p *duration.Hours) key {
	text := ""
	k := textKey(name, &text, func(s string) (err error) {
		*p = duration.Hours{}
		if s != "" {
			*p, err = duration.ParseHours(s)
		}
		return err
	})
	return k
}

// urlKey binds the URL of a webhook. It may hold a secret, so messages and shown values contain its
// host at most.
func urlKey(name string, p *string) key {
	k := textKey(name, p, checkURL)
	k.show = func() string {
		u, err := url.Parse(*p)
		if err != nil || *p == "" {
			return quote("")
		}
		shown := u.Scheme + "://" + u.Host
		if u.Path != "" || u.RawQuery != "" {
			shown += "/…"
		}
		return quote(shown)
	}
	return k
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return errors.New("must be a URL such as https://example.com/hook")
	case u.User != nil:
		return errors.New("must hold no user or password")
	}
	return nil
}

func checkChannelKind(s string) error {
	if slices.Contains(channelKinds, s) {
		return nil
	}
	return document.Hinted(fmt.Errorf("must be desktop, webhook, command or bell, not %q", clip(s)), didYouMean(s, channelKinds))
}

func checkAlertKind(s string) error {
	known := []string{}
	for _, kind := range slices.Concat(agency.AlertKinds(), agency.SessionAlertKinds(), agency.LandingAlertKinds(), agency.HostAlertKinds()) {
		known = append(known, string(kind))
	}
	for _, kind := range agency.NoticeKinds() {
		known = append(known, string(kind))
	}
	if slices.Contains(known, s) {
		return nil
	}
	hint := didYouMean(s, known)
	if hint == "" {
		hint = "the kinds are " + strings.Join(known, ", ")
	}
	return document.Hinted(fmt.Errorf("must be a kind of alert, not %q", clip(s)), hint)
}

var variableRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

func checkVariable(s string) error {
	if s != "" && !variableRule().MatchString(s) {
		return fmt.Errorf("must be the name of a variable, not %q", clip(s))
	}
	return nil
}

func checkSecretFile(s string) error {
	if s != "" && !filepath.IsAbs(s) {
		return fmt.Errorf("must be an absolute path, not %q", clip(s))
	}
	return checkText(s)
}

func checkProgram(s string) error {
	switch {
	case s == "":
		return errors.New("must not be empty")
	case !filepath.IsAbs(s) && strings.ContainsRune(s, '/'):
		return fmt.Errorf("must be the name of a program or an absolute path, not %q", clip(s))
	}
	return nil
}
