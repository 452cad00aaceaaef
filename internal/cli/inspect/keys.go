package inspect

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"agency/internal/api"
	"agency/internal/cli/term"
)

// actions are the commands that keys run on the chosen run of a watched list.
var actions = map[string]string{"enter": "attach", "a": "answer", "d": "diff", "l": "logs", "x": "stop"}

// pressed returns the channel of keys; nil when the user cannot type.
func (w *listWatch) pressed() chan string {
	if w.keys == nil {
		return nil
	}
	return w.keys.Pressed
}

// choice returns the position of the chosen run in a list, or -1.
func (w *listWatch) choice(runs []api.Run) int {
	return slices.IndexFunc(runs, func(r api.Run) bool { return r.ID == w.chosen })
}

// press reacts to a key. j and k choose a run. A key of actions runs its command on that run, and
// the command's output stays until the next key. When no run is chosen, as at the beginning, each
// of these keys chooses the first one. x must be pressed twice.
func (w *listWatch) press(ctx context.Context, key string) {
	if key == "ctrl-z" {
		w.suspend()
		return
	}
	if w.left {
		w.fresh()
		w.left = false
		return
	}
	runs := w.shown.Runs
	if len(runs) == 0 {
		return
	}
	at := w.choice(runs)
	again := w.stopping
	w.stopping = ""
	switch command := actions[key]; {
	case at < 0 && (key == "j" || key == "k" || command != ""):
		w.chosen = runs[0].ID
	case key == "j":
		w.chosen = runs[min(at+1, len(runs)-1)].ID
	case key == "k":
		w.chosen = runs[max(at-1, 0)].ID
	case key == "x" && again != w.chosen:
		w.stopping = w.chosen
	case command != "":
		w.run(ctx, command, &runs[at])
	}
}

// The lines below the output of another command, and below the list.
const (
	anyKey  = "\n(any key: back to the list)\n"
	keyHelp = "q: quit  j k: choose  Enter: attach  a: answer  d: diff  l: logs  x: stop"
)

// foot returns the line below the list; "" when no keys are read, or when a small screen has no row
// for it.
func (w *listWatch) foot(runs []api.Run, at, rows int) string {
	const leastRows = 10
	switch {
	case at >= 0 && w.stopping == w.chosen && rows > 3:
		return "x again: stop " + runs[at].Ref()
	case w.keys == nil || rows < leastRows:
		return ""
	case w.app.Colour():
		return term.Paint("dim", keyHelp)
	default:
		return keyHelp
	}
}

// fresh scrolls the output of another command off the screen, so that the list begins at the top.
// The terminal keeps the output above.
func (w *listWatch) fresh() {
	_, rows := term.Size(w.app.Terminal)
	_, _ = io.WriteString(w.app.Out, strings.Repeat("\n", rows)+"\x1b[H")
}

// run gives the terminal to another command of agency. After attach, which leaves no output to
// read, the list returns at once.
func (w *listWatch) run(ctx context.Context, command string, r *api.Run) {
	program, err := os.Executable()
	if err != nil {
		return
	}
	w.keys.Release()
	w.canvas.Clear(w.app.Out)
	w.footed = false
	cmd := exec.CommandContext(ctx, program, command, "--", string(r.ID))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = w.app.In, w.app.Terminal, w.app.Err, w.app.Env, w.app.Dir
	err = cmd.Run()
	if command != "attach" || err != nil {
		_, _ = io.WriteString(w.app.Out, anyKey)
		w.left = true
	} else {
		w.fresh()
	}
	w.keys.Take()
}

// suspend stops the command until the user's shell continues it. In the background it continues
// without keys: it prints lines, and the shell keeps the terminal.
func (w *listWatch) suspend() {
	if !w.left {
		w.canvas.Clear(w.app.Out)
	}
	w.left, w.footed = false, false
	if !w.keys.Suspend() {
		w.keys, w.inPlace = nil, false
	}
}
