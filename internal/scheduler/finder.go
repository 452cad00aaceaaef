package scheduler

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// The words that stand for sessions of a repository.
const (
	activeSession = "active" // the running one that began last
	latestSession = "latest" // the one that began last
)

// SessionStore is the record that a Finder reads.
type SessionStore interface {
	// MatchSessions returns up to limit sessions that a reference could mean, running ones of that
	// name first.
	MatchSessions(ctx context.Context, ref string, limit int) ([]agency.Session, error)
	Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error)
}

// Finder finds the session that a reference means.
type Finder struct {
	Store SessionStore
	// Discover returns the repository of a folder.
	Discover func(ctx context.Context, dir string) (agency.Repo, error)
}

// LookUp is Find for clients that only read, or that continue from a settled session: when no
// session runs, active means the one that began last.
func (f Finder) LookUp(ctx context.Context, ref, dir string) (*agency.Session, error) {
	found, err := f.Find(ctx, ref, dir)
	if ref == activeSession && agency.IsCode(err, agency.CodeSessionNotFound) {
		return f.newest(ctx, latestSession, dir)
	}
	return found, err
}

// Find returns the one session that a reference means: its id, its name, a unique part of an id or
// a name as the store matches them, or, in the repository of dir, active or latest. If several
// sessions have a name, it means the running one, or the last retry of all others.
func (f Finder) Find(ctx context.Context, ref, dir string) (*agency.Session, error) {
	if ref == activeSession || ref == latestSession {
		return f.newest(ctx, ref, dir)
	}
	const most = 10
	found, err := f.Store.MatchSessions(ctx, ref, most)
	found = lastRetries(found, ref)
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
		return nil, f.missing(ctx, ref)
	}
}

// lastRetries leaves out the sessions of a name that another one of that name retries.
func lastRetries(found []agency.Session, name string) []agency.Session {
	retried := map[agency.SessionID]bool{}
	for i := range found {
		if strings.HasPrefix(found[i].Name, name) {
			retried[found[i].RetryOf] = true
		}
	}
	return slices.DeleteFunc(found, func(s agency.Session) bool { return retried[s.ID] && strings.HasPrefix(s.Name, name) })
}

// missing returns the error for a reference that means no session, with the nearest name.
func (f Finder) missing(ctx context.Context, ref string) error {
	missing := agency.Errorf(agency.CodeSessionNotFound, "no session is called %q", ref).WithHint("agency session ls")
	all, err := f.Store.Sessions(ctx, agency.SessionFilter{})
	if err != nil {
		return err
	}
	names := make([]string, 0, 2*len(all))
	for i := range all {
		if names = append(names, string(all[i].ID)); all[i].Name != "" {
			names = append(names, all[i].Name)
		}
	}
	if near := plain.Nearest(ref, names); near != "" {
		return missing.WithHint("did you mean %s? all sessions: agency session ls", near)
	}
	return missing
}

func (f Finder) newest(ctx context.Context, word, dir string) (*agency.Session, error) {
	repo, err := f.Discover(ctx, dir)
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
	found, err := f.Store.Sessions(ctx, agency.SessionFilter{Repo: repo.Fingerprint, Live: word == activeSession, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, none
	}
	return &found[0], nil
}
