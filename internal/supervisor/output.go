package supervisor

import (
	"context"
	"errors"
	"os"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
	"agency/internal/supervisor/observe"
)

// Limits of a run's output that is shown.
const (
	outputLines = 50
	mostOutput  = 500 // lines
	shownResult = 64 << 10
)

// Shown is the recent output of a run's agent, and its result.
type Shown struct {
	Lines  []string // the last lines of its terminal, or of its log
	Result string   // the beginning of output.md; empty while there is none
}

// Output returns the end of what a run's agent prints, and its result, both safe for a terminal.
// lines 0 is 50.
func (q *Query) Output(ctx context.Context, ref string, lines int) (*agency.Run, Shown, error) {
	r, err := q.store.Resolve(ctx, ref)
	if err != nil {
		return nil, Shown{}, err
	}
	if lines <= 0 {
		lines = outputLines
	}
	shown := Shown{Lines: q.terminals.Preview(ctx, r, min(lines, mostOutput))}
	data, err := file.ReadRegular(observe.OutputPath(r), observe.OutputLimit)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		q.log.Warn("read output.md", "run", r.ID, "err", err)
	}
	shown.Result = plain.Visible(string(data[:min(len(data), shownResult)]))
	return r, shown, nil
}
