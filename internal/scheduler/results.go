package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// ReportName is the file beside status.json that holds the report of a settled session.
const ReportName = "report.md"

// ResultStore is the part of the record that Results works with.
type ResultStore interface {
	// UnreportedSessions are those of agency's own that ReportSession was not called for, oldest first.
	UnreportedSessions(ctx context.Context) ([]agency.Session, error)
	// SessionSince is a session and those of its agents that changed after a time, all for the zero time.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	// AddResult keeps what an agent came to, once.
	AddResult(ctx context.Context, id agency.SessionID, agent string, r *agency.AgentResult) error
	SessionResults(ctx context.Context, id agency.SessionID) (map[string]agency.AgentResult, error)
	// Told are the reasons, a line each, that were told of a session that waits for somebody, and how often something was.
	Told(ctx context.Context, id agency.SessionID) (needs string, tellings int, err error)
	SetTold(ctx context.Context, id agency.SessionID, needs string, tellings int) error
	// ReportSession records that nothing is left to do for a settled session.
	ReportSession(ctx context.Context, id agency.SessionID) error
	Changed() <-chan struct{}
}

// ResultDeps are the parts that Results works with.
type ResultDeps struct {
	Store ResultStore
	// Facts are what a run came to; ended is false while more may come. A run that was never made is an empty result.
	Facts func(ctx context.Context, id agency.RunID) (r agency.AgentResult, ended bool, err error)
	// Tell tells whoever should know. n is the number of the telling about this session, so that it can be known again.
	Tell func(ctx context.Context, s *agency.Session, kind agency.NoticeKind, n int, text string) error
	Log  *slog.Logger
	Now  func() time.Time
}

// How Results goes about it.
const (
	lookPause   = 100 * time.Millisecond // between two looks, however much happens
	lookEvery   = 15 * time.Second       // when nothing happens
	factsTime   = time.Minute            // for what git says of one run
	endPatience = time.Minute            // for the run of a final agent to end
	retryFirst  = 15 * time.Second
	retryMost   = 10 * time.Minute
)

// Results looks after what follows from a session. It finds out what each agent came to once it is final; it tells who should
// know when the session waits for somebody and when it has settled, and it writes the report then. What is done stands in the
// record, and everything else is done again after a crash: with the same results, the same report, and messages that are known by
// their ids.
type Results struct {
	ResultDeps
	sessions map[agency.SessionID]*outcome // of the goroutine alone

	mu      sync.Mutex
	cancel  context.CancelFunc // nil while stopped
	running sync.WaitGroup
}

// outcome is what is known of one session.
type outcome struct {
	seen      time.Time // UpdatedAt of the session when its agents were read
	agents    map[string]agency.SessionAgent
	known     map[string]bool // agents whose results are in the record
	failures  int             // in a row
	notBefore time.Time
}

// NewResults makes Results. It does nothing until Start.
func NewResults(deps ResultDeps) *Results {
	return &Results{ResultDeps: deps, sessions: map[agency.SessionID]*outcome{}}
}

// Start begins to look, with what is left from before. The second Start does nothing.
func (r *Results) Start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		return
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.running.Go(func() { r.run(ctx) })
}

// Stop ends the looking and waits for that. It may be called at any time, and twice.
func (r *Results) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
		r.running.Wait()
		r.cancel = nil
	}
}

func (r *Results) run(ctx context.Context) {
	clock := time.NewTicker(lookEvery)
	defer clock.Stop()
	for {
		changed := r.Store.Changed()
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("look after sessions", "err", err)
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return
		}
		select {
		case <-changed:
		case <-clock.C:
		case <-ctx.Done():
			return
		}
	}
}

// look does what there is to do for every session.
func (r *Results) look(ctx context.Context) error {
	sessions, err := r.Store.UnreportedSessions(ctx)
	if err != nil {
		return err
	}
	left := make(map[agency.SessionID]bool, len(sessions))
	for i := range sessions {
		id := sessions[i].ID
		left[id] = true
		o := r.sessions[id]
		if o == nil {
			o = &outcome{agents: map[string]agency.SessionAgent{}}
			r.sessions[id] = o
		}
		if r.Now().Before(o.notBefore) {
			continue
		}
		err := r.advance(ctx, id, o)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			o.failures = 0
			continue
		}
		o.notBefore = r.Now().Add(min(retryFirst<<min(o.failures, 10), retryMost))
		o.failures++
		r.Log.Warn("look after session", "session", id, "err", err, "again", o.notBefore)
	}
	for id := range r.sessions {
		if !left[id] {
			delete(r.sessions, id)
		}
	}
	return nil
}

// advance does what there is to do for one session.
func (r *Results) advance(ctx context.Context, id agency.SessionID, o *outcome) error {
	if o.known == nil {
		results, err := r.Store.SessionResults(ctx, id)
		if err != nil {
			return err
		}
		o.known = map[string]bool{}
		for agent := range results {
			o.known[agent] = true
		}
	}
	s, changed, err := r.Store.SessionSince(ctx, id, o.seen)
	if err != nil {
		return err
	}
	for i := range changed {
		o.agents[changed[i].ID] = changed[i]
	}
	o.seen = s.UpdatedAt
	agents := o.inOrder()
	if err := r.tellNeed(ctx, s, agents); err != nil {
		return err
	}
	complete, err := r.findOut(ctx, id, agents, o.known)
	if err != nil || !complete || !s.Status.Final() {
		return err
	}
	return r.finish(ctx, s, agents)
}

func (o *outcome) inOrder() []agency.SessionAgent {
	agents := make([]agency.SessionAgent, 0, len(o.agents))
	for _, a := range o.agents {
		agents = append(agents, a)
	}
	slices.SortFunc(agents, func(a, b agency.SessionAgent) int { return a.Position - b.Position })
	return agents
}

// findOut writes down what the agents that are final came to. It is complete when that is known of all of them.
func (r *Results) findOut(ctx context.Context, id agency.SessionID, agents []agency.SessionAgent, known map[string]bool) (complete bool, err error) {
	complete = true
	for i := range agents {
		a := &agents[i]
		if !a.Status.Final() || a.Run == "" || known[a.ID] {
			continue
		}
		result, ended, err := r.facts(ctx, a.Run)
		if err != nil {
			return false, err
		}
		if late := a.CompletedAt == nil || r.Now().Sub(*a.CompletedAt) >= endPatience; !ended && !late {
			complete = false
			continue
		}
		if err := r.Store.AddResult(ctx, id, a.ID, &result); err != nil {
			return false, err
		}
		killpoint.At("results.found")
		known[a.ID] = true
	}
	return complete, nil
}

func (r *Results) facts(ctx context.Context, id agency.RunID) (agency.AgentResult, bool, error) {
	timed, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	result, ended, err := r.Facts(timed, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return agency.AgentResult{Problem: fmt.Sprintf("git did not answer within %s", factsTime)}, true, nil
	}
	return result, ended, err
}

// tellNeed tells that a session waits for somebody, once for each reason that it comes to wait for.
func (r *Results) tellNeed(ctx context.Context, s *agency.Session, agents []agency.SessionAgent) error {
	needs := needsOf(s, agents)
	before, tellings, err := r.Store.Told(ctx, s.ID)
	if err != nil {
		return err
	}
	told := strings.Join(needs, "\n")
	if told == before {
		return nil
	}
	fresh := slices.DeleteFunc(needs, func(need string) bool { return slices.Contains(strings.Split(before, "\n"), need) })
	if len(fresh) > 0 {
		tellings++
		if err := r.Tell(ctx, s, agency.NoticePaused, tellings, strings.Join(fresh, "; ")); err != nil {
			return fmt.Errorf("tell of session %s: %w", s.ID, err)
		}
	}
	return r.Store.SetTold(ctx, s.ID, told, tellings)
}

// needsOf are the reasons why a session waits for somebody, each in a line; none while it goes on, or was paused by hand.
func needsOf(s *agency.Session, agents []agency.SessionAgent) []string {
	if s.Status.Final() || s.CancelAt != nil {
		return nil
	}
	needs := []string{}
	if s.Paused != "" && s.Paused != agency.PausedByHand {
		needs = append(needs, oneLine(s.Paused))
	}
	for i := range agents {
		if a := &agents[i]; a.Status == agency.AgentQueued && a.Error != "" {
			needs = append(needs, a.ID+": "+oneLine(a.Error))
		}
	}
	return needs
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// finish writes the report of a settled session and tells that it has settled.
func (r *Results) finish(ctx context.Context, s *agency.Session, agents []agency.SessionAgent) error {
	results, err := r.Store.SessionResults(ctx, s.ID)
	if err != nil {
		return err
	}
	root, rel, err := place(s)
	if err != nil {
		return err
	}
	if err := file.WriteBeneath(root, filepath.Join(rel, ReportName), Report(s, agents, results), 0o644); err != nil {
		return err
	}
	killpoint.At("results.written")
	if err := r.Tell(ctx, s, agency.NoticeOf(s.Status), 0, endText(s, agents)); err != nil {
		return fmt.Errorf("tell of session %s: %w", s.ID, err)
	}
	killpoint.At("results.told")
	return r.Store.ReportSession(ctx, s.ID)
}

// endText is what a settled session came to, in a line.
func endText(s *agency.Session, agents []agency.SessionAgent) string {
	text := s.Tally.String()
	for i := range agents {
		if a := &agents[i]; a.Status == agency.AgentFailed {
			return fmt.Sprintf("%s; %s: %s", text, a.ID, a.Error)
		}
	}
	return text
}
