package inspect

import (
	"context"
	"fmt"
	"io"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// listStandbys prints the worktrees that were made ahead of runs.
func (o *listOptions) listStandbys(ctx context.Context) error {
	resp, err := command.Call(ctx, o.Deps, api.ListStandbys, api.Empty{})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if len(resp.Standbys) == 0 {
			o.Chat("no worktrees are ready ahead of runs; docs/project.md: when agency makes some")
			return
		}
		rows := [][]string{{"STANDBY", "STATE", "AGE", "BASE", "SETUP", "FILES", "REPO"}}
		for i := range resp.Standbys {
			s := &resp.Standbys[i]
			state, setup := "being made", "-"
			if s.Ready {
				state = "ready"
			}
			if s.Setup {
				setup = "done"
			}
			rows = append(rows, []string{
				s.ID, state, duration.Short(o.Now().Sub(s.MadeAt)), term.SafeLine(fmt.Sprintf("%s (%.12s)", s.Base, s.Commit)), setup, fmt.Sprint(s.Files), term.SafeLine(s.Repo),
			})
		}
		if width := o.Columns(); width > 0 {
			term.Narrow(rows, width, []term.Cut{{6, 12}, {3, 12}, {0, 8}})
		}
		_, _ = io.WriteString(w, o.TextTable(rows))
	})
}
