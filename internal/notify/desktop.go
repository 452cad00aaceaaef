package notify

import (
	"context"
	"strings"
	"unicode/utf8"

	"agency"
	"agency/internal/plain"
)

// Desktop shows notices on the desktop of the session that the daemon belongs to.
type Desktop struct {
	name string
	os   string
}

// NewDesktop returns a channel to the desktop of an operating system, as Go calls it: darwin has
// osascript, everything else notify-send.
func NewDesktop(name, os string) *Desktop { return &Desktop{name: name, os: os} }

// Name implements Channel.
func (d *Desktop) Name() string { return d.name }

// Send implements Channel.
func (d *Desktop) Send(ctx context.Context, n *agency.Notice) error {
	return run(ctx, desktopArgv(d.os, n), nil)
}

// The most bytes that a desktop shows.
const (
	titleLength = 200
	bodyLength  = 1000
)

// desktopArgv returns the command line that shows a notice. Title and body are arguments that are
// never read as options, markup or script.
func desktopArgv(os string, n *agency.Notice) []string {
	title, body := shown(n.Title, titleLength), shown(n.Body, bodyLength)
	if os == "darwin" {
		return []string{
			"osascript", "-e", "on run argv", "-e", "display notification (item 3 of argv) with title (item 1 of argv) subtitle (item 2 of argv)",
			"-e", "end run", "agency", title, body,
		}
	}
	return []string{"notify-send", "--app-name=agency", "--", title, plainBody.Replace(body)}
}

// plainBody escapes a body so that it shows literally: notify-send reads backslash escapes, and
// desktops read markup.
var plainBody = strings.NewReplacer(`\`, `\\`, "&", "&amp;", "<", "&lt;", ">", "&gt;")

// shown returns the visible part of a text, in at most this many bytes.
func shown(s string, most int) string {
	s = strings.ReplaceAll(plain.Visible(s), "\t", " ")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
