package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"agency"
	"agency/internal/plain"
)

// containers finds containers of attempts that are over, of runs that the record does not know, and
// of data roots that are gone. Containers of other data roots belong to their daemons.
func (d *Doctor) containers(ctx context.Context, env agency.Environ, runs []agency.Run, lost map[string]agency.Run, orphan func(kind, place, fix string)) {
	byID := make(map[agency.RunID]*agency.Run, len(runs))
	for i := range runs {
		byID[runs[i].ID] = &runs[i]
	}
	home := d.Daemon.Config.Home
	found, away := d.Sandbox.Containers(ctx, env, home)
	for _, c := range found {
		remove := fmt.Sprintf("docker -H unix://%s rm -f %s", plain.ShellWord(c.Engine), plain.ShellWord(c.Name))
		r := byID[c.Run]
		_, isLost := lost[string(c.Run)]
		switch {
		case c.Home != home:
			if _, err := os.Lstat(c.Home); errors.Is(err, fs.ErrNotExist) {
				orphan("container", fmt.Sprintf("%s, of the data root %s, which is gone", c.Name, plain.OneLine(c.Home)), remove)
			}
		case isLost:
		case r != nil && c.Attempt > r.Attempt.Number:
			orphan("container", fmt.Sprintf("%s, of attempt %d of %s, which the record does not know", c.Name, c.Attempt, r.Ref()), rebuild)
		case r == nil:
			orphan("container", c.Name+", of a run that the record does not know", remove)
		case d.over(r, c.Attempt):
			if r.RemovedAt != nil {
				remove = "agency rm " + string(r.ID)
			}
			orphan("container", fmt.Sprintf("%s, of attempt %d of %s, which is over", c.Name, c.Attempt, r.Ref()), remove)
		}
	}
	for _, c := range away {
		if r := byID[c.Run]; r != nil && d.over(r, c.Attempt) {
			orphan("container", fmt.Sprintf("%s, of attempt %d of %s, may be there: the engine at %s does not answer", c.Name, c.Attempt, r.Ref(), c.Engine),
				"start the engine; then: agency doctor")
		}
	}
}

// over reports whether an attempt ended some time ago: its container is removed after its end.
func (d *Doctor) over(r *agency.Run, attempt int) bool {
	a := &r.Attempt
	return attempt != a.Number || r.RemovedAt != nil || a.State.Final() && (a.EndedAt == nil || d.Elapsed(*a.EndedAt) > leaveLimit)
}
