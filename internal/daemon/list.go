package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
)

// listed is a run of a list.
type listed struct {
	run    *agency.Run // must not be changed
	status agency.Status
}

// listRuns returns the runs that a request selects, in its order and with its fields, to be encoded
// one after another.
func (o runOperations) listRuns(ctx context.Context, req any) (any, error) {
	list := req.(*api.ListRunsRequest)
	if list.Order != "" && list.Order != api.OrderByNeed {
		return nil, agency.Errorf(agency.CodeUsage, "order is %q, not empty or %q", list.Order, api.OrderByNeed)
	}
	if list.Offset < 0 || list.Limit < 0 {
		return nil, agency.Errorf(agency.CodeUsage, "offset %d, limit %d: neither can be negative", list.Offset, list.Limit)
	}
	runs, err := o.selected(ctx, list)
	if err != nil {
		return nil, err
	}
	if list.Order == api.OrderByNeed {
		runs = byNeed(runs)
	}
	total := 0
	if list.Offset > 0 || list.Limit > 0 {
		total = len(runs)
		runs = runs[min(list.Offset, total):]
		runs = runs[:min(cmp.Or(list.Limit, total), len(runs))]
	}
	wants := func(field string) bool { return len(list.Fields) == 0 || slices.Contains(list.Fields, field) }
	snoozed, sessions := map[agency.RunID]time.Time{}, map[agency.RunID]agency.Membership{}
	if wants("snoozed_until") {
		if snoozed, err = o.store.Snoozed(ctx); err != nil {
			return nil, err
		}
	}
	if wants("session") {
		if sessions, err = o.store.SessionsOfRuns(ctx, list.RunIDs); err != nil {
			return nil, err
		}
	}
	return api.NewRunRows(func(yield func(*api.Run) bool) {
		for i := range runs {
			r := api.NewRun(runs[i].run, runs[i].status)
			if until, ok := snoozed[r.ID]; ok {
				r.SnoozedUntil = &until
			}
			if in, ok := sessions[r.ID]; ok {
				r.Member = &in
			}
			if !yield(&r) {
				return
			}
		}
	}, list.Fields, total)
}

// mostRunIDs is the largest number of runs that a client can list by their ids at once.
const mostRunIDs = 1000

// selected returns the runs that a request selects, oldest first.
func (o runOperations) selected(ctx context.Context, req *api.ListRunsRequest) ([]listed, error) {
	wanted, err := parseLabels(req.Status)
	if err != nil {
		return nil, err
	}
	var runs []*agency.Run
	filter := agency.Filter{Removed: req.Removed, Tag: req.Tag}
	switch {
	case len(req.RunIDs) > mostRunIDs:
		return nil, agency.Errorf(agency.CodeUsage, "run_ids has %d ids, and at most %d can be listed at once", len(req.RunIDs), mostRunIDs)
	case len(req.RunIDs) > 0 && req.Run != "":
		return nil, agency.Errorf(agency.CodeUsage, "run and run_ids cannot be used together")
	case len(req.RunIDs) > 0:
		runs, err = o.sup.Query.RunsWithIDs(ctx, req.Dir, req.RunIDs, filter)
	case req.Run != "":
		runs, err = o.sup.Query.RunOf(ctx, req.Dir, req.Run, filter)
	default:
		runs, err = o.sup.Query.RunsOf(ctx, req.Dir, filter)
	}
	if err != nil {
		return nil, err
	}
	sees, err := o.policy.Sees(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]listed, 0, len(runs))
	for _, r := range runs {
		if sees != nil {
			if seen, err := sees(r); err != nil {
				return nil, err
			} else if !seen {
				continue
			}
		}
		now, status := o.sup.Observer.Status(r)
		if len(wanted) == 0 || wanted[status.Label] {
			all = append(all, listed{now, status})
		}
	}
	return all, nil
}

// byNeed returns runs, which are oldest first, in api.OrderByNeed.
func byNeed(runs []listed) []listed {
	type ranked struct {
		api.Rank

		at int
	}
	ranks := make([]ranked, len(runs))
	for i := range runs {
		ranks[i] = ranked{api.RankOf(runs[i].run, runs[i].status), i}
	}
	slices.SortFunc(ranks, func(a, b ranked) int { return cmp.Or(a.Compare(b.Rank), a.at-b.at) })
	sorted := make([]listed, len(runs))
	for i := range ranks {
		sorted[i] = runs[ranks[i].at]
	}
	return sorted
}

func parseLabels(words []string) (map[agency.Label]bool, error) {
	labels := map[agency.Label]bool{}
	for _, w := range words {
		l, err := agency.ParseLabel(w)
		if err != nil {
			return nil, err
		}
		labels[l] = true
	}
	return labels, nil
}
