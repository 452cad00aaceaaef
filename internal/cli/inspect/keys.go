package inspect

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"

	"agency/internal/api"
	"agency/internal/view"
)

// actions are the commands that keys run on the chosen run of a watched list.
var actions = map[string]string{"enter": "attach", "a": "answer", "d": "diff", "l": "logs", "x": "stop"}

// pressed returns the channel of keys; nil when no user can type.
func (w *listWatch) pressed() chan string {
	if w.keys == nil {
		return nil
	}
	return w.keys.Pressed
}

// choice returns the place of the chosen run in a list, or -1.
func (w *listWatch) choice(runs []api.Run) int {
	return slices.IndexFunc(runs, func(r api.Run) bool { return r.ID == w.chosen })
}

// press does what a key means. j and k choose a run; a key of actions runs its command on that run,
// and the command's output stays until the next key. Without a chosen run, as at the beginning, each
// of them chooses the first one. x must be pressed twice.
func (w *listWatch) press(ctx context.Context, key string) {
	if w.left {
		w.left = false
		return
	}
	runs := view.ByNeed(w.shown.Runs)
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

// run gives the terminal to another command of agency. The list comes back at once after attach,
// which leaves nothing to read.
func (w *listWatch) run(ctx context.Context, command string, r *api.Run) {
	program, err := os.Executable()
	if err != nil {
		return
	}
	w.keys.Release()
	_, _ = io.WriteString(w.app.Out, "\n")
	cmd := exec.CommandContext(ctx, program, command, "--", string(r.ID))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = w.app.In, w.app.Terminal, w.app.Err, w.app.Env, w.app.Dir
	err = cmd.Run()
	if command != "attach" || err != nil {
		_, _ = io.WriteString(w.app.Out, "\n(any key: back to the list)\n")
		w.left = true
	}
	w.canvas.Forget()
	w.keys.Take()
}
