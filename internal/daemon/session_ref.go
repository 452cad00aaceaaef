package daemon

import (
	"context"
	"strings"

	"agency"
)

// The words that stand for sessions of a repository.
const (
	activeSession = "active" // the one that began last and is running
	latestSession = "latest" // the one that began last
)

// lookUp is session for whoever only looks, or goes on from what has settled: active is the one that the link to the active session leads to,
// which is the one that began last when none runs.
func (d *Daemon) lookUp(ctx context.Context, ref, dir string) (*agency.Session, error) {
	found, err := d.session(ctx, ref, dir)
	if ref == activeSession && agency.IsCode(err, agency.CodeSessionNotFound) {
		return d.newestSession(ctx, latestSession, dir)
	}
	return found, err
}

// session finds the one session that a reference means: its id, its name, a unique part of an id or a name as the store matches them, or, of
// the repository of dir, active or latest. A name that several sessions have is that of the one that runs.
func (d *Daemon) session(ctx context.Context, ref, dir string) (*agency.Session, error) {
	if ref == activeSession || ref == latestSession {
		return d.newestSession(ctx, ref, dir)
	}
	const most = 10
	found, err := d.store.MatchSessions(ctx, ref, most)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1 && found[0].Name == ref && found[0].Status == agency.SessionRunning && found[1].Status != agency.SessionRunning:
		return &found[0], nil
	case len(found) > 1:
		candidates := make([]string, 0, len(found))
		for i := range found {
			candidates = append(candidates, string(found[i].ID))
		}
		return nil, agency.Errorf(agency.CodeRunAmbiguous, "%q could be session %s", ref, strings.Join(candidates, ", ")).
			WithDetail("candidates", candidates).WithHint("give the id")
	case ref != "" && len(ref) < agency.MinPrefix:
		return nil, agency.Errorf(agency.CodeSessionNotFound, "no session is called %q", ref).
			WithHint("a part of an id must have %d characters or more; agency session ls shows all sessions", agency.MinPrefix)
	default:
		return nil, agency.Errorf(agency.CodeSessionNotFound, "no session is called %q", ref).WithHint("agency session ls")
	}
}

func (d *Daemon) newestSession(ctx context.Context, word, dir string) (*agency.Session, error) {
	repo, err := d.git.Discover(ctx, dir)
	if err != nil {
		return nil, err
	}
	none := agency.Errorf(agency.CodeSessionNotFound, "no session of %s is running", repo.Root).WithHint("the one that ran last is called latest; agency session ls shows all")
	if word == latestSession {
		none = agency.Errorf(agency.CodeSessionNotFound, "there is no session of %s", repo.Root).WithHint("agency session start plan.yaml")
	}
	if repo.Fingerprint == "" {
		return nil, none // agency was never used here
	}
	found, err := d.store.Sessions(ctx, agency.SessionFilter{Repo: repo.Fingerprint, Live: word == activeSession, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, none
	}
	return &found[0], nil
}
