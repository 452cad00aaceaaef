package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"agency"
	"agency/internal/api"
)

// watchList shows the list and then each change of it, until interrupted. On a terminal it repaints in place; elsewhere it
// prints a line for each run that changed, and with --json an envelope a line.
func (a *App) watchList(ctx context.Context, o *listOptions) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	events, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Limit: 1})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	ended := make(chan error, 1)
	go func() {
		ended <- client.Events(ctx, events.LastSeq, "", func(agency.Event) error {
			select {
			case changed <- struct{}{}:
			default: // a look is due already
			}
			return nil
		})
	}()
	// Ages and stalls come with time alone.
	clock := time.NewTicker(30 * time.Second)
	defer clock.Stop()
	w := &listWatch{app: a, seen: map[agency.RunID]string{}}
	resized := make(chan os.Signal, 1)
	if _, ok := terminal(a.Out); ok && !a.json {
		w.inPlace = true
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		defer func() { _, _ = io.WriteString(a.out, "\r\x1b[J") }() // the ^C that the terminal has echoed
	}
	for {
		select {
		case <-changed:
		case <-resized:
		case <-clock.C:
		case err := <-ended:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon went away").WithHint("agency ls --watch")
			}
			return err
		}
		resp, err := a.list(ctx, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.show(resp); err != nil {
			return err
		}
	}
}

// listWatch remembers what was shown last.
type listWatch struct {
	app     *App
	inPlace bool
	lines   []string // on the terminal
	columns int      // of the terminal when they were painted
	rows    int
	last    []byte // as JSON
	seen    map[agency.RunID]string
}

func (w *listWatch) show(resp api.ListRunsResponse) error {
	switch {
	case w.app.json:
		text, err := json.Marshal(resp.Runs)
		if err != nil || bytes.Equal(text, w.last) {
			return err
		}
		w.last = text
		return w.app.printLine(resp)
	case w.inPlace:
		w.repaint(strings.Split(strings.TrimRight(w.app.table(resp.Runs), "\n"), "\n"))
		return w.app.out.err
	}
	for i := range resp.Runs {
		r := &resp.Runs[i]
		line := fmt.Sprintf("%s  %s %s  %s", r.Ref(), r.Status.Mark(), r.Status, fit(safeLine(r.Summary), summaryColumns))
		if w.seen[r.ID] != line {
			w.seen[r.ID] = line
			_, _ = fmt.Fprintln(w.app.out, strings.TrimRight(line, " "))
		}
	}
	return w.app.out.err
}

// repaint rewrites the lines that differ, from the first line of the list that stands above the cursor; the others are not
// touched. A terminal that changed its size has moved what was on it, in a way of its own, so there the list is written
// over it from the top.
func (w *listWatch) repaint(lines []string) {
	columns, rows := terminalSize(w.app.Out)
	var b strings.Builder
	if columns != w.columns || rows != w.rows {
		if w.columns > 0 {
			b.WriteString("\x1b[H")
		}
		w.lines, w.columns, w.rows = nil, columns, rows
	}
	lines = newest(lines, rows-1)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], columns, "…")
	}
	if w.lines != nil && slices.Equal(lines, w.lines) {
		return
	}
	if up := len(w.lines); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	for i, line := range lines {
		if i < len(w.lines) && w.lines[i] == line {
			b.WriteString("\n")
			continue
		}
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	w.lines = lines
	_, _ = io.WriteString(w.app.out, b.String())
}

// newest is as much of the list as fits into so many rows: its header, a line that says how many runs are missing, and the
// newest runs. Fewer than three rows hold runs alone.
func newest(lines []string, room int) []string {
	room = max(room, 1)
	switch {
	case len(lines) <= room:
		return lines
	case room < 3:
		return lines[len(lines)-room:]
	}
	hidden := len(lines) - room + 1
	return slices.Concat(lines[:1], []string{fmt.Sprintf("… %d more above", hidden)}, lines[1+hidden:])
}

// terminalSize is the size of the terminal w in cells.
func terminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		columns, rows, _ = term.GetSize(int(f.Fd()))
	}
	if columns <= 0 || rows <= 0 {
		return 80, 24 // a terminal that does not know its size, such as a serial line
	}
	return columns, rows
}
