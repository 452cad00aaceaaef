package sqlite

import (
	"context"
	"strings"

	"agency"
)

// MatchRuns returns the runs that ref can mean, oldest first and at most limit of them; 0 is no
// limit. One is an answer, several are candidates, none is an empty slice. The first of these that
// matches decides:
//
//  1. the id, the handle, or the name of a run not removed; this is one run
//  2. SESSION/AGENT, by the name or id of a session; the newest one decides
//  3. the id of an agent, as its plan has it, of a running session
//  4. the beginning of an id, a handle or a name, for runs not removed
//  5. the beginning of a handle without the date that it begins with, for runs not removed
//  6. the name of the newest removed run
//  7. the beginning of an id, name or handle of a removed run
//
// A beginning has agency.MinPrefix characters or more. Ids are read in any case.
func (s *runs) MatchRuns(ctx context.Context, ref string, limit int) ([]agency.Run, error) {
	id := idCase(ref)
	slash := strings.LastIndexByte(ref, '/')
	session, agent := ref[:max(slash, 0)], ref[slash+1:]
	const last = "\U0010FFFF" // sorts after every character that an id, a name or a handle can hold
	prefix := []any{id, id + last, ref, ref + last, ref, ref + last, atMost(limit)}
	queries := []struct {
		where     string
		args      []any
		minLength int
	}{
		{matchExactly, []any{id, ref, ref, id, ref}, 1},
		{matchAgentOf, []any{agent, session, session}, 1},
		{matchAgent, []any{ref, atMost(limit)}, 1},
		{matchPrefix + `AND r.removed_at_ms IS NULL ORDER BY r.seq LIMIT ?`, prefix, agency.MinPrefix},
		{matchUndated, []any{ref, ref + last, atMost(limit)}, agency.MinPrefix},
		{`WHERE r.name = ? AND r.name <> '' AND r.removed_at_ms IS NOT NULL ORDER BY r.seq DESC LIMIT 1`, []any{ref}, 1},
		{matchPrefix + `AND r.removed_at_ms IS NOT NULL ORDER BY r.seq LIMIT ?`, prefix, agency.MinPrefix},
	}
	facts := s.db.unwritten.all()
	for _, q := range queries {
		if len(ref) < q.minLength {
			continue
		}
		runs, err := s.queryRuns(ctx, selectRuns+q.where, q.args...)
		if err != nil || len(runs) > 0 {
			overlay(facts, runs)
			return runs, err
		}
	}
	return []agency.Run{}, nil
}

// A name can be the handle of another run; then the name wins.
const matchExactly = `WHERE r.seq IN (
		SELECT seq FROM runs WHERE id = ?
		UNION ALL SELECT seq FROM runs WHERE name = ? AND name <> '' AND removed_at_ms IS NULL
		UNION ALL SELECT seq FROM runs WHERE handle = ?)
	ORDER BY r.id = ? DESC, r.name = ? DESC LIMIT 1`

// Ranges, unlike LIKE, use the indexes and know no wildcards.
const matchPrefix = `WHERE r.seq IN (
		SELECT seq FROM runs WHERE id >= ? AND id < ?
		UNION ALL SELECT seq FROM runs WHERE name >= ? AND name < ? AND name <> ''
		UNION ALL SELECT seq FROM runs WHERE handle >= ? AND handle < ?) `

// matchAgentOf finds the run of an agent of a session, and matchAgent those of an agent in all
// sessions that run.
const (
	matchAgentOf = `WHERE r.id = (SELECT a.run FROM session_agents a JOIN sessions s ON s.seq = a.session
		WHERE a.id = ? AND a.run <> '' AND (s.name <> '' AND s.name = ? OR s.id = ?) ORDER BY s.seq DESC LIMIT 1)`
	matchAgent = `WHERE r.id IN (SELECT a.run FROM session_agents a JOIN sessions s ON s.seq = a.session
		WHERE a.id = ? AND a.run <> '' AND s.status = 'running') ORDER BY r.seq LIMIT ?`
)

// All handles of a day begin with the same digits, so users type what comes after them.
const matchUndated = `WHERE r.removed_at_ms IS NULL AND ltrim(r.handle, '0123456789-') >= ? AND ltrim(r.handle, '0123456789-') < ?
	ORDER BY r.seq LIMIT ?`

// idCase is ref in the case in which ids are stored.
func idCase(ref string) string {
	if len(ref) < 2 {
		return ref
	}
	return strings.ToLower(ref[:2]) + strings.ToUpper(ref[2:])
}
