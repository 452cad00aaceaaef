package sqlite

import (
	"context"
	"slices"
	"strings"

	"agency"
)

// Runs returns the runs that match a filter, oldest first. Their pointers are shared with other
// results: do not write to them.
func (s *runs) Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error) {
	shared, err := s.List(ctx, f)
	if err != nil {
		return nil, err
	}
	runs := make([]agency.Run, len(shared))
	for i, r := range shared {
		runs[i] = *r
	}
	return runs, nil
}

// List is Runs for long lists: the runs themselves are shared with other results too, so do not
// write to them or to the slice. Asking for the same list again costs nothing until something is
// written.
func (s *runs) List(ctx context.Context, f agency.Filter) ([]*agency.Run, error) {
	facts := s.db.unwritten.all()
	now := s.db.commits.Load()
	runs, ok := s.db.lists.recall(f, now)
	if !ok {
		query, args := versionsOf(f)
		versions, err := s.queryVersions(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		slices.Reverse(versions)
		if runs, err = s.runsOf(ctx, versions); err != nil {
			return nil, err
		}
		s.db.lists.keep(f, now, runs)
	}
	if len(facts) == 0 {
		return runs, nil
	}
	runs = slices.Clone(runs)
	for i, r := range runs {
		if _, ok := facts[r.ID]; ok {
			own := *r
			overlayRun(facts, &own)
			runs[i] = &own
		}
	}
	if f.Live {
		runs = slices.DeleteFunc(runs, func(r *agency.Run) bool { return r.Attempt.State.Final() })
	}
	return runs, nil
}

// versionsOf returns the query for the versions of the runs that match a filter, the newest first.
func versionsOf(f agency.Filter) (query string, args []any) {
	var where []string
	only := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	switch {
	case f.Live:
		only(`(r.id, r.attempt) IN (SELECT run_id, number FROM attempts WHERE state IN ('queued', 'running'))`)
	case !f.Removed:
		only(`r.removed_at_ms IS NULL`)
	}
	if f.Repo != "" {
		only(`r.repo = ?`, f.Repo)
	}
	if f.Worktree != "" {
		only(`r.worktree_path = ?`, f.Worktree)
	}
	if f.Tag != "" {
		only(`EXISTS (SELECT 1 FROM json_each(r.tags) WHERE value = ?)`, f.Tag)
	}
	query = `SELECT r.seq, r.updated_at_ms FROM runs r `
	if len(where) > 0 {
		query += `WHERE ` + strings.Join(where, ` AND `)
	}
	return query + ` ORDER BY r.seq DESC LIMIT ?`, append(args, atMost(f.Limit))
}

// queryVersions reads rows of seq and updated_at_ms.
func (s *runs) queryVersions(ctx context.Context, query string, args ...any) ([]version, error) {
	rows, err := s.db.query(ctx, query, args...)
	if err != nil {
		return nil, problem("read runs from", s.db.path, err)
	}
	versions, err := collect(rows, func(row scanner) (version, error) {
		var v version
		err := row.Scan(whole(&v.seq), whole(&v.updated))
		return v, err
	})
	return versions, problem("read runs from", s.db.path, err)
}

func (s *runs) queryRuns(ctx context.Context, query string, args ...any) ([]agency.Run, error) {
	rows, err := s.db.query(ctx, query, args...)
	if err != nil {
		return nil, problem("read runs from", s.db.path, err)
	}
	runs, err := collect(rows, runScanner())
	return runs, problem("read runs from", s.db.path, err)
}

// atMost returns a limit for SQL, where a negative one is no limit.
func atMost(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}
