package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// The parts that decide something by themselves, for tests of all their cases.
var (
	ParseSince = parseSince

	Squeeze = command.Squeeze

	MessageText = messageText
)

// Root is the tree of commands.
func (a *App) Root() *cobra.Command { return a.root(a.deps()) }

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
func (a *App) AwaitNext(ctx context.Context, home string) error { return a.deps().AwaitNext(ctx, home) }
