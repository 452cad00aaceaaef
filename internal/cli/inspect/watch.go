package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// watchList shows the list and then each change of it, until it is interrupted. On a terminal it
// repaints the list in place; elsewhere it prints a line for each run that changed, or with --json
// an envelope on one line.
func (o *listOptions) watchList(ctx context.Context) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended, err := follow(ctx, client)
	if err != nil {
		return err
	}
	// Ages and stalls change by time alone.
	clock := time.NewTicker(30 * time.Second)
	defer clock.Stop()
	w := &listWatch{app: o.Deps, repos: o.allRepos}
	resized, leave := w.enter()
	defer leave()
	// The list is requested in the background, so that keys work even while no daemon answers.
	lists, asked, stale := make(chan listed, 1), false, false
	for {
		select {
		case key, ok := <-w.pressed():
			if !ok || key == "q" && !w.left || key == "ctrl-c" {
				return nil
			}
			if err := w.react(ctx, key); err != nil {
				return err
			}
			if len(w.shown.Runs) >= w.shown.Total {
				continue
			}
		case got := <-lists:
			if asked = false; ctx.Err() != nil {
				return nil
			}
			if err := w.take(got); err != nil {
				return err
			}
			if !stale {
				continue
			}
		case <-changed:
		case <-resized:
		case <-clock.C:
		case err := <-ended:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		if stale = asked; !asked {
			asked = true
			req := w.request(o) // for the present choice, which a key can change
			go func() {
				resp, err := o.list(ctx, client, req)
				lists <- listed{resp, err}
			}()
		}
	}
}

// take shows a list that has arrived.
func (w *listWatch) take(got listed) error {
	if got.err != nil {
		return got.err
	}
	return w.show(got.resp)
}

// react acts on a key, and shows the list again.
func (w *listWatch) react(ctx context.Context, key string) error {
	w.press(ctx, key)
	if w.keys != nil {
		w.keys.Next()
	}
	return w.show(w.shown)
}

// request returns the request for what is shown: in JSON each change has the whole list, and a
// screen has the first runs, until the user begins to choose among all.
func (w *listWatch) request(o *listOptions) api.ListRunsRequest {
	req := o.request(nil)
	switch {
	case w.app.JSON:
	case w.inPlace:
		req.Fields, req.Order = append(command.RunFields(command.RunColumns()...), "id"), api.OrderByNeed
		if w.chosen == "" {
			_, req.Limit = term.Size(o.Terminal)
		}
	default:
		req.Fields = []string{"id", "handle", "name", "status", "summary", "problem"}
	}
	return req
}

// listed is the answer to one request for the list.
type listed struct {
	resp api.ListRunsResponse
	err  error
}

// listWatch remembers what was shown last.
type listWatch struct {
	app     *command.Deps
	repos   bool // show the repository of each run
	inPlace bool
	canvas  term.Canvas
	last    []byte                  // as JSON
	seen    map[agency.RunID]string // the line of each run that is listed

	keys   *term.Keys // nil when no user can type
	shown  api.ListRunsResponse
	chosen agency.RunID // the run that keys act on; empty until one is pressed
	left   bool         // another command has the screen, until a key is pressed

	stopping agency.RunID // the run that another x stops
	footed   bool         // a line about keys stands below the list
}

// enter takes the terminal, if there is one, to repaint the list in place and to read keys. The
// channel gets a signal for each change of the terminal's size; leave gives the terminal back.
func (w *listWatch) enter() (resized chan os.Signal, leave func()) {
	resized = make(chan os.Signal, 1)
	if _, ok := term.Columns(w.app.Terminal); !ok || w.app.JSON || !term.Foreground(w.app.Terminal) {
		return resized, func() {}
	}
	w.inPlace = true
	signal.Notify(resized, syscall.SIGWINCH)
	if keys, err := term.ReadKeys(w.app.In); err == nil {
		w.keys = keys
		keys.Next()
	}
	return resized, func() {
		w.leave()
		signal.Stop(resized)
	}
}

// leave gives the terminal back, and erases the ^C that it may have echoed.
func (w *listWatch) leave() {
	if w.keys != nil {
		w.keys.Release()
	}
	if w.inPlace {
		if w.footed {
			_, _ = io.WriteString(w.app.Out, "\x1b[A")
		}
		_, _ = io.WriteString(w.app.Out, "\r\x1b[J")
	}
}

func (w *listWatch) show(resp api.ListRunsResponse) error {
	w.shown = resp
	if w.left {
		return nil
	}
	switch {
	case w.app.JSON:
		text, err := json.Marshal(resp.Runs)
		if err != nil || bytes.Equal(text, w.last) {
			return err
		}
		w.last = text
		return w.app.PrintLine(resp)
	case w.inPlace:
		var out io.Writer = w.app.Out
		if w.keys != nil {
			out = term.RawWriter{W: out}
		}
		runs := resp.Runs
		w.app.Paint(&w.canvas, out, func(rows int) []string {
			lines := strings.Split(strings.TrimRight(w.app.RunTable(runs, w.repos), "\n"), "\n")
			at, room := w.choice(runs), rows-1
			foot := w.foot(runs, at, rows)
			if w.footed = foot != ""; w.footed {
				room--
			}
			if at >= 0 {
				lines[at+1] = term.Reversed(lines[at+1])
				if below := at + 2 - room; below > 0 { // keep the chosen run on the screen
					lines = slices.Concat(lines[:1], lines[1+below:])
				}
			}
			lines = top(lines, resp.Total, room)
			if w.footed {
				lines = append(lines, foot)
			}
			return lines
		})
		return w.app.Out.Failed()
	}
	before := w.seen
	w.seen = make(map[agency.RunID]string, len(resp.Runs))
	for i := range resp.Runs {
		r := &resp.Runs[i]
		line := fmt.Sprintf("%s  %s %s  %s", r.Ref(), r.Status.Mark(), r.Status, term.Fit(term.SafeLine(view.Summary(r)), command.SummaryColumns))
		if before[r.ID] != line {
			_, _ = fmt.Fprintln(w.app.Out, strings.TrimRight(line, " "))
		}
		w.seen[r.ID] = line
		delete(before, r.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		ref, _, _ := strings.Cut(before[id], "  ")
		_, _ = fmt.Fprintln(w.app.Out, ref+"  no longer listed")
	}
	return w.app.Out.Failed()
}

// top returns the part of a list of total runs that fits into the rows: its header, the first runs,
// and a line with the number of the others. With fewer than three rows it returns only runs. lines
// are the header and the known runs.
func top(lines []string, total, rows int) []string {
	rows = max(rows, 1)
	total = max(total, len(lines)-1) // the answer has no total when it has all runs
	switch {
	case total+1 <= rows:
		return lines
	case rows < 3:
		return lines[1:min(1+rows, len(lines))]
	}
	shown := lines[:min(rows-1, len(lines))]
	return append(slices.Clone(shown), fmt.Sprintf("… %d more", total+1-len(shown)))
}

// follow signals on changed when something happened, from now on, and after each start of a daemon.
// When it ends, it sends the reason on ended, even if that is the end of ctx.
func follow(ctx context.Context, client *api.Client) (changed chan struct{}, ended chan error, err error) {
	events, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Limit: 1})
	if err != nil {
		return nil, nil, err
	}
	changed, ended = make(chan struct{}, 1), make(chan error, 1)
	changed <- struct{}{}
	look := func() {
		select {
		case changed <- struct{}{}:
		default: // a signal is pending already
		}
	}
	go func() {
		ended <- client.Follow(ctx, events.LastSeq, "", look, func(agency.Event) error {
			look()
			return nil
		})
	}()
	return changed, ended, nil
}
