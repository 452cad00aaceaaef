package menu

import (
	"context"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// runList is the list of runs as they were numbered last, and what the user was told about them.
type runList struct {
	daemon   *page.Daemon
	filter   string
	numbered []api.Run       // those that the filter shows
	told     map[string]bool // runs, each with what it needs the user for
}

// read asks for the runs again, and returns how many there are without the filter.
func (l *runList) read(ctx context.Context) (all int, err error) {
	resp, err := l.daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return 0, err
	}
	all = len(resp.Runs)
	l.numbered = slices.DeleteFunc(resp.Runs, func(r api.Run) bool { return !list.Matches(l.filter, &r) })
	slices.SortStableFunc(l.numbered, func(a, b api.Run) int { return view.Compare(&a, &b) })
	return all, nil
}

// runText returns the row of a run, with its repository if repos is true.
func runText(r *api.Run, repos bool) string {
	text := r.Ref()
	if repos {
		text += " in " + filepath.Base(r.Repo)
	}
	text += ", " + r.Status.String()
	if view.GroupOf(r) == view.GroupSnoozed {
		text += ", snoozed"
	}
	if summary := view.Summary(r); summary != "" {
		text += ": " + summary
	}
	return text
}

// names returns the names of the runs of the list, by their ids.
func (l *runList) names() map[string]string {
	names := map[string]string{}
	for i := range l.numbered {
		names[string(l.numbered[i].ID)] = l.numbered[i].Ref()
	}
	return names
}

// news returns rows about the runs that need the user and did not before. The numbers stay as they are.
func (l *runList) news(ctx context.Context) []string {
	resp, err := l.daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return nil // the next action reports the error
	}
	texts := []string{}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; l.isNews(r) {
			texts = append(texts, "news: "+runText(r, false))
		}
	}
	return texts
}

// isNews reports whether a run needs the user for something new. From then on, that is not new any more.
func (l *runList) isNews(r *api.Run) bool {
	key := string(r.ID) + " " + r.Status.String() + " " + view.PromptID(r)
	switch {
	case view.GroupOf(r) == view.GroupSnoozed:
		delete(l.told, key) // it is news again after the snooze
		return false
	case !r.NeedsYou() || l.told[key]:
		return false
	}
	l.told[key] = true
	return true
}

// find reads a run by its id.
func (l *runList) find(ctx context.Context, id agency.RunID) (*api.Run, error) {
	resp, err := l.daemon.ListRuns(ctx, api.ListRunsRequest{RunIDs: []agency.RunID{id}})
	switch {
	case err != nil:
		return nil, err
	case len(resp.Runs) == 0:
		name := l.names()[string(id)]
		if name == "" {
			name = "its run"
		}
		return nil, agency.Errorf(agency.CodeRunNotFound, "%s was removed", name).WithHint("the list of runs again: r")
	default:
		return &resp.Runs[0], nil
	}
}
