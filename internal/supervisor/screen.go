package supervisor

import (
	"context"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/status"
)

// How long the supervisor waits for what an agent's terminal shows.
const (
	// screenQuiet is how long a terminal must be still before it is read: a screen that is being painted says nothing.
	screenQuiet = 1500 * time.Millisecond
	// readyTimeout is how long a message waits for an agent that is still starting.
	readyTimeout = 20 * time.Second
	readyEvery   = 250 * time.Millisecond
	// readySteady is how long an input box must stand: some agents draw theirs, and then a dialog in its place.
	readySteady = 1500 * time.Millisecond
)

// lookSoon reads an agent's screen once its output has been still for a while. It is the last resort: an agent that
// speaks for itself is not looked at, unless it is not known which
// of its requests a person can answer.
func (s *Supervisor) lookSoon(id agency.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[id]
	if l == nil {
		return
	}
	quiet, vague := screenQuiet, status.Vague(l.situation)
	if vague {
		quiet = dialogQuiet
	}
	switch {
	case status.SpokeForItself(l.situation) && len(s.patternsFor(l)) == 0 && !vague:
	case l.look != nil:
		l.look.Reset(quiet)
	default:
		l.look = time.AfterFunc(quiet, func() {
			if s.ctx.Err() == nil {
				s.look(s.ctx, id)
				s.lookAtDialog(s.ctx, id)
				s.readShown(s.ctx, id)
			}
		})
	}
}

// look reads an agent's screen and keeps what is new in it as evidence. It returns the evidence that the screen shows.
func (s *Supervisor) look(ctx context.Context, id agency.RunID) []agency.Evidence {
	l, ok := s.liveCopy(id)
	if !ok || status.SpokeForItself(l.situation) {
		return nil
	}
	r, err := s.Records.Run(ctx, id)
	if err != nil || r.Attempt.Headless || r.Attempt.State != agency.Running || r.Attempt.Number != l.attempt || !s.Harness.ReadsScreen(r.Runner) {
		return nil
	}
	text, err := s.Tmux.Capture(ctx, r.Session(), r.Attempt.Pane)
	if err != nil {
		return nil // the terminal is going away, and its wrapper tells
	}
	shown := s.Harness.Screen(r.Runner, strings.Split(strings.TrimRight(text, "\n"), "\n"))
	s.mu.Lock()
	now := s.live[id]
	if now == nil || slices.Equal(now.screen, shown) && !status.NeedsDetail(now.situation, shown) {
		s.mu.Unlock()
		return shown
	}
	before := now.screen
	now.screen = shown
	s.mu.Unlock()
	news := slices.Clone(shown)
	if asks(before) && !asks(shown) && before[0].Event != agency.EventComplete { // else a title tells that it is over
		gone := agency.Evidence{Source: agency.FromScreen, Sign: agency.SignAnswered}
		if before[0].Kind == agency.AsksDialog {
			gone.Sign = agency.SignSession // its program begins; whether it works is not said by that
		}
		news = append([]agency.Evidence{gone}, news...)
	}
	s.observe(ctx, &l, news)
	return shown
}

func asks(evidence []agency.Evidence) bool {
	return slices.ContainsFunc(evidence, func(e agency.Evidence) bool { return e.Sign == agency.SignAsked })
}

// awaitReady returns when an agent can take a message: a line typed into a dialog would answer the dialog, and Enter alone
// can end some agents. It is E_INVALID_STATE while the agent waits for something that only its terminal can take, and when
// neither the agent nor its terminal shows in time that there is an input box: what it shows then may be a dialog too.
func (s *Supervisor) awaitReady(ctx context.Context, r *agency.Run) error {
	var steady []agency.Evidence // what the terminal shows, since when
	var since time.Time
	for deadline := time.Now().Add(readyTimeout); ; {
		shown := s.look(ctx, r.ID)
		l, ok := s.liveCopy(r.ID)
		if !ok {
			return nil
		}
		if len(l.situation.Requests) > 0 {
			return agency.Errorf(agency.CodeInvalidState, "%s waits for an answer in its terminal, and a message would be taken for it: %s",
				r.Ref(), l.situation.Requests[0].Summary()).WithHint("agency attach %s", r.Ref())
		}
		_, began := l.situation.Sources[agency.FromTranscript]
		if status.SpokeForItself(l.situation) || began || r.Attempt.Headless || !s.Harness.ShowsReady(r.Runner) {
			return nil
		}
		now := time.Now()
		switch {
		case len(shown) == 0 || !slices.Equal(shown, steady):
			steady, since = shown, now
		case now.Sub(since) >= readySteady:
			return nil
		}
		if now.After(deadline) {
			return agency.Errorf(agency.CodeInvalidState, "%s shows no input box yet, and a message could be taken for something else", r.Ref()).
				WithHint("agency attach %s", r.Ref())
		}
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
