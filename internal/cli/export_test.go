package cli

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

// The parts that decide something by themselves, for tests of all their cases.
var (
	SafeText   = safeText
	SafeLine   = safeLine
	Fit        = fit
	Width      = width
	Columns    = columns
	ParseSince = parseSince

	ParseDuration = parseDuration
	DurationText  = durationText

	CopySafe = copySafe
	Squeeze  = squeeze
	Hang     = hang
	TextRows = textRows

	MessageText = messageText
)

// LeastText is as narrow as a column of text may become.
const LeastText = leastText

// Root is the tree of commands.
func (a *App) Root() *cobra.Command { return a.root() }

// Repaint shows one list after the other on a terminal of 80 columns and 24 rows, and returns what is written for each.
func Repaint(lists ...[]string) []string {
	var out bytes.Buffer
	app, c := &App{Out: &out, out: &output{w: &out}}, canvas{}
	var written []string
	for _, list := range lists {
		out.Reset()
		c.paint(app, func(int) []string { return list })
		written = append(written, out.String())
	}
	return written
}

// SessionLines is the picture of a session, in so many columns and rows.
func SessionLines(s *api.ShowSessionResponse, now time.Time, room, rows int) []string {
	v := &sessionView{ShowSessionResponse: s, now: now, room: room}
	return v.lines(rows)
}

// Concerns says whether an event is about a session or one of its runs.
func Concerns(e *agency.Event, id agency.SessionID, runs map[agency.RunID]bool) bool {
	return concerns(e, id, runs)
}

// AwaitNext waits for the next daemon.
func (a *App) AwaitNext(ctx context.Context, home string) error { return a.awaitNext(ctx, home) }
