package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// newWatch returns the command agency session watch.
func newWatch(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "watch [SESSION]",
		Short: "Watch a session until it has settled",
		Long: `Shows the agents of a session by wave, and every change, until the session has
settled; without SESSION, the running one, or if none runs, the latest. Into a file or a pipe it
writes a line for each change. Ctrl-C ends only this command. Marks: ● working, ◐ needs you, ○
queued, ✕ failed, ✓ done, - cancelled. Exit status: 0 complete, 1 failed, 4 cancelled, or complete
without its cancelled agents, 130 Ctrl-C.`,
		Example: "  agency session watch\n  agency session watch 20260201-143022-abc12345",
		Args:    command.TakesUpTo("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		client, err := d.Client()
		if err != nil {
			return err
		}
		s, since, err := begin(cmd.Context(), d, client, args)
		if err != nil {
			return err
		}
		return watch(cmd.Context(), d, client, s, since)
	})
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

// find returns the session that the arguments name; without arguments, the active one.
func find(ctx context.Context, d *command.Deps, client *api.Client, args []string) (api.ShowSessionResponse, error) {
	req := api.SessionRequest{Session: "active", Dir: d.Dir}
	if len(args) > 0 {
		req.Session = args[0]
	}
	return api.Call(ctx, client, api.ShowSession, req)
}

// watch shows a session and then each change of it until it has settled. since is the number of an
// event, up to which the session includes all changes.
func watch(ctx context.Context, d *command.Deps, client *api.Client, s api.ShowSessionResponse, since int64) (err error) {
	d.Asks = true
	req := api.SessionRequest{Session: s.Session.Ref(), Dir: d.Dir}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := follow(ctx, client, &s, since)
	w := &watching{app: d, seen: map[string]string{}}
	resized := make(chan os.Signal, 1)
	if _, ok := term.Columns(d.Terminal); ok && !d.JSON {
		w.inPlace = true
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
	}
	tick, clock := time.NewTicker(time.Second), time.NewTicker(30*time.Second)
	defer tick.Stop()
	defer clock.Stop()
	var due <-chan time.Time
	var reported <-chan struct{}
	over := false // no report follows
	var limiter rescanLimiter
	for {
		if err := w.show(&s); err != nil {
			return err
		}
		if settled := s.Session.Status.Final(); settled && (s.Session.External || s.Session.ReportPath != "" || over) {
			d.Status = exitStatus(&s.Session)
			return nil
		} else if settled && reported == nil {
			reported = awaitReport(ctx, client, req)
		}
		look := false
		select {
		case <-changed:
			due = limiter.due()
		case <-due:
			look = true
		case <-clock.C: // stalls change by time alone
			look = true
		case <-reported:
			look, over = true, true
		case <-tick.C:
		case <-resized:
		case err = <-ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if look && err == nil {
			due = nil
			began := time.Now()
			s, err = api.Call(ctx, client, api.ShowSession, req)
			limiter.looked(began)
		}
		if ctx.Err() != nil {
			w.leave(req.Session)
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// awaitReport returns a channel that is closed when the report of a settled session is written, or
// when it cannot be written or takes too long.
func awaitReport(ctx context.Context, client *api.Client, req api.SessionRequest) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = api.Call(ctx, client, api.WaitSession, api.WaitSessionRequest{Session: req.Session, Dir: req.Dir})
	}()
	return done
}

// watching remembers what was shown last.
type watching struct {
	app     *command.Deps
	inPlace bool
	canvas  term.Canvas
	begun   bool
	last    []byte            // as JSON
	seen    map[string]string // by agent; "" and "\n" are the session and its report
}

func (w *watching) show(s *api.ShowSessionResponse) error {
	shown := &picture{ShowSessionResponse: s, now: w.app.Now()}
	switch {
	case w.app.JSON:
		text, err := json.Marshal(s)
		if err != nil || bytes.Equal(text, w.last) {
			return err
		}
		w.last = text
		return w.app.PrintLine(s)
	case w.inPlace:
		shown.colour = w.app.Colour()
		w.app.Paint(&w.canvas, w.app.Out, func(rows int) []string {
			shown.width, _ = term.Size(w.app.Terminal)
			return shown.lines(rows - 1)
		})
	default:
		w.append(shown)
	}
	w.begun = true
	return w.app.Out.Failed()
}

// append writes a line for each change since the last call. An agent that is still queued gets
// none.
func (w *watching) append(v *picture) {
	at := v.now.Local().Format(time.TimeOnly)
	change := func(key, state, line string) {
		if w.seen[key] != state {
			w.seen[key] = state
			_, _ = fmt.Fprintf(w.app.Out, "%s  %s\n", at, line)
		}
	}
	s := &v.Session
	title := s.Ref()
	if s.Name != "" {
		title += " " + term.SafeLine(s.Name)
	}
	if !s.Status.Final() {
		state := term.SafeLine(s.Paused)
		if state != "" {
			state = "  paused: " + state
		}
		change("", state+"\n", title+"  "+v.pending()+state)
	}
	for i := range v.Agents {
		a := &v.Agents[i]
		if !w.begun && a.Status == agency.AgentQueued && a.Error == "" {
			w.seen[a.ID] = view.AgentMark(a) + view.AgentStatus(a)
			continue
		}
		line := fmt.Sprintf("%s %s", view.AgentMark(a), a.ID)
		if called := name(a); called != "" {
			line += " " + called
		}
		line += "  " + view.AgentStatus(a)
		if a.CompletedAt != nil && a.StartedAt != nil {
			line += " after " + v.took(a)
		}
		if said := term.Fit(note(a), noteColumns); said != "" && (a.NeedsUser || a.Status.Final() || a.Error != "" || a.NotBefore != nil) {
			line += "  " + said
		}
		state := view.AgentMark(a) + view.AgentStatus(a)
		if a.NeedsUser || a.NotBefore != nil {
			state += note(a)
		}
		change(a.ID, state, line)
	}
	if s.Status.Final() {
		change("", string(s.Status), title+"  "+v.pending())
		if s.ReportPath != "" {
			change("\n", s.ReportPath, "report: "+term.SafeLine(s.ReportPath))
		}
	}
}

// leave prints that only watching ends, not the session.
func (w *watching) leave(session string) {
	if w.inPlace {
		_, _ = io.WriteString(w.app.Out, "\r\x1b[J") // erase the ^C that the terminal has echoed
	}
	w.app.Chat("the session continues; watch it again: agency session watch %s", session)
	w.app.Chat("end it: agency session cancel %s", session)
}
