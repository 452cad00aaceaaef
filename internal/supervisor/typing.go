package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/plain"
	"agency/internal/status"
	"agency/internal/supervisor/keyed"
	"agency/internal/supervisor/observe"
)

// Everything that agency types into the terminal of an agent goes through this file, typeInput and
// typeKeys, and is typed by the wrapper right after a look at what the terminal shows. Nothing in
// the record of an agent can bypass that look.

// Times of typing.
const (
	// inputTimeout is how long a wrapper may take to type a message and to watch for its effect,
	// and then the record to take it. A wrapper that has other things to type first, and whose agent
	// hardly reads, takes 60 seconds at most.
	inputTimeout = 65 * time.Second
	keysTimeout  = 30 * time.Second
	// boxWait is how long an input box may be missing: a terminal that is being painted shows none
	// for a moment.
	boxWait  = 3 * time.Second
	boxEvery = 100 * time.Millisecond
	// drawWait is how long a typed text may take to appear in the input box. Enter waits for it: an
	// agent that reads both at once can take Enter for a part of the text, and nothing would show that
	// it was there.
	drawWait = 2 * time.Second
	// takenWait is how long an agent may take to show that it took a message; stoppedWait is for
	// one that has not reacted at all.
	takenWait   = 5 * time.Second
	stoppedWait = 10 * time.Second
	takenEvery  = 100 * time.Millisecond
	// enterAgain is when Enter is pressed once more, because the text is still in the input box.
	enterAgain = 1500 * time.Millisecond
	// readyTimeout is how long a message waits for an agent that is still starting.
	readyTimeout = 20 * time.Second
	readyEvery   = 250 * time.Millisecond
	// readySteady is how long an input box must stay: some agents draw theirs, and then a dialog in
	// its place.
	readySteady = 1500 * time.Millisecond
)

// Input types into the terminals of agents: messages, and answers to what they ask.
type Input struct {
	store    *Records
	live     *Live
	observer *observe.Observer
	harness  Harness
	tmux     Tmux
	random   Random
	log      *slog.Logger
	now      func() time.Time
	locks    keyed.Locks // serialises answers to one run
}

// Send types text into a run's agent and presses Enter, through the wrapper. With a promptID, the
// error is E_INVALID_STATE unless the agent waits for exactly that. The error is E_INPUT_REFUSED
// while the terminal shows a dialog. Files are copied into the worktree, and the text names them.
func (in *Input) Send(ctx context.Context, ref, text, promptID string, files ...agency.Attachment) (*agency.Run, agency.Delivery, error) {
	r, err := in.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Delivery{}, err
	}
	if promptID != "" {
		release, err := in.locks.Lock(ctx, string(r.ID))
		if err != nil {
			return nil, agency.Delivery{}, err
		}
		defer release()
		if r, err = in.store.Run(ctx, r.ID); err != nil {
			return nil, agency.Delivery{}, err
		}
		if now := in.observer.Derive(r).PromptID(); now != promptID {
			return nil, agency.Delivery{}, promptChanged(r, promptID, now)
		}
	}
	if r.RemovedAt != nil {
		return nil, agency.Delivery{}, agency.Errorf(agency.CodeInvalidState, "%s is removed, so no agent would read the message", r.Ref()).WithHint("start a new run: agency run TASK")
	}
	if r.Attempt.State != agency.Running {
		return nil, agency.Delivery{}, agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so it would not read the message", r.Ref()).
			WithHint("give it a new task: agency resume %s --prompt TEXT", r.Ref())
	}
	if r.Attempt.Mode == agency.ModeProtocol {
		text, paths, err := attach(r.Worktree, text, files)
		if err != nil {
			return nil, agency.Delivery{}, err
		}
		delivery, err := in.say(ctx, r, agency.Saying{Kind: agency.SaysMessage, ID: in.random.uuid(), Text: text, Files: paths, By: sayer(ctx)})
		return r, delivery, err
	}
	link, err := in.live.mustLink(ctx, r)
	if err != nil {
		return nil, agency.Delivery{}, err
	}
	if err := in.awaitReady(ctx, r); err != nil {
		return nil, agency.Delivery{}, err
	}
	if text, _, err = attach(r.Worktree, text, files); err != nil {
		return nil, agency.Delivery{}, err
	}
	delivery, err := in.typeInput(context.WithoutCancel(ctx), r, link, text)
	return r, delivery, err
}

// entry is what was seen right before Enter was pressed.
type entry struct {
	at    time.Time
	sight agency.Sight
}

// typeInput types text into a run's agent and records it; it must not be interrupted in between.
// Without an answer from the wrapper the text may have been typed: the record has that, and the
// agent's request stays open for the user to check. agency.MayHaveTyped recognizes such errors.
func (in *Input) typeInput(ctx context.Context, r *agency.Run, link Link, text string) (delivery agency.Delivery, err error) {
	typing, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	at := in.now() // before the text is typed: a question right after it is a new one
	var last entry
	var looked atomic.Bool // at a terminal into which the text may be typed
	defer func() {
		if err != nil && looked.Load() {
			err = agency.TypedPerhaps(err)
		}
	}()
	var stage agency.Typing // the newest one, which waits for its text until drawBy
	var drawBy time.Time
	delivery, err = link.Input(typing, text, func(ctx context.Context, next agency.Typing) (unsent bool, err error) {
		if next != stage {
			stage, drawBy = next, time.Now().Add(drawWait)
		}
		sight, err := in.drawnSight(ctx, r, next, text, drawBy)
		last = entry{in.now(), sight}
		unsent = sight.Keeps(next)
		if err == nil && unsent && next.Last != text {
			err = unsentError(r, next.Last)
		}
		if err == nil {
			looked.Store(true)
		}
		return unsent, err
	})
	gone := looked.Load() && errors.Is(err, io.ErrUnexpectedEOF)
	silent := gone || errors.Is(err, context.DeadlineExceeded)
	switch {
	case gone:
		err = agency.Errorf(agency.CodeInvalidState, "the wrapper of %s went away before it answered, and the message may have been typed", r.Ref()).
			WithHint("look before you send it again: agency attach %s", r.Ref())
	case silent:
		err = agency.Errorf(agency.CodeInvalidState, "the wrapper of %s did not answer within %s, and the message may have been typed", r.Ref(), duration.Text(inputTimeout)).
			WithHint("look before you send it again: agency attach %s", r.Ref())
	case err != nil:
		return agency.Delivery{}, byName(err, r)
	default:
		delivery = in.confirm(ctx, r, text, last, delivery)
	}
	recording, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	number, taken := r.Attempt.Number, !silent && delivery.Effect != agency.EffectComposer
	_, failed := in.store.fact(recording, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Attempt.Number == number && taken {
			r.Attempt.InputAt = &at
		}
		return []agency.EventDraft{{Type: agency.InputDelivered, Data: map[string]any{"bytes": len(text), "confirmed": delivery.Confirmed}}}, nil
	})
	return delivery, errors.Join(err, failed)
}

func unsentError(r *agency.Run, text string) error {
	return agency.Errorf(agency.CodeInputRefused, "the terminal of %s may still have the text of an earlier message, and this one would be added to it: %s", r.Ref(), plain.Clip(plain.OneLine(text))).
		WithHint("send that message again, which presses Enter; or press Enter or Ctrl-U there: agency attach %s", r.Ref())
}

// clearSight looks at a run's terminal before something is typed into it. The error is
// E_INPUT_REFUSED when the terminal shows a dialog, lacks a required input box, or cannot be read.
func (in *Input) clearSight(ctx context.Context, r *agency.Run) (agency.Sight, error) {
	for deadline := time.Now().Add(boxWait); ; {
		sight, err := in.sight(ctx, r)
		switch {
		case err != nil:
			return sight, agency.Errorf(agency.CodeInputRefused, "agency cannot read the terminal of %s, so it types nothing into it: %s", r.Ref(), agency.AsError(err).Message).
				WithHint("agency attach %s", r.Ref())
		case sight.Dialog != "":
			return sight, agency.Errorf(agency.CodeInputRefused, "the terminal of %s shows a dialog, and what is typed would answer it: %s", r.Ref(), sight.Dialog).
				WithHint("answer it yourself: agency attach %s; or, where agency show %s names what it asks: agency answer %s allow|deny|TEXT", r.Ref(), r.Ref(), r.Ref())
		case !sight.Boxless:
			return sight, nil
		case time.Now().After(deadline):
			return sight, agency.Errorf(agency.CodeInputRefused, "the terminal of %s shows no input box, and the text could go elsewhere", r.Ref()).
				WithHint("agency attach %s", r.Ref())
		}
		select {
		case <-time.After(boxEvery):
		case <-ctx.Done():
			return sight, ctx.Err()
		}
	}
}

// drawnSight is clearSight that waits, until a time, for the input box to show what it has: before an
// Enter the text, and before the text the last one, unless that was sent.
func (in *Input) drawnSight(ctx context.Context, r *agency.Run, next agency.Typing, text string, until time.Time) (agency.Sight, error) {
	for {
		sight, err := in.clearSight(ctx, r)
		drawn := true
		switch {
		case err != nil || sight.Composer == nil:
		case next.Enter:
			drawn = sight.Holds(text)
		case next.Last != "":
			drawn = sight.Keeps(next) != next.Moved
		}
		if err != nil || drawn || !time.Now().Before(until) {
			return sight, err
		}
		select {
		case <-time.After(boxEvery):
		case <-ctx.Done():
			return sight, ctx.Err()
		}
	}
}

// sight reads what a run's terminal shows now.
func (in *Input) sight(ctx context.Context, r *agency.Run) (agency.Sight, error) {
	text, err := in.tmux.Capture(ctx, r.Session(), r.Attempt.Pane)
	if err != nil {
		return agency.Sight{}, err
	}
	return in.harness.Sight(r.Runner, strings.Split(strings.TrimRight(text, "\n"), "\n")), nil
}

// confirm watches for proof that an agent took the typed message: it reports a prompt, or the text
// left its input box and it is at work. A program that reads an Enter together with the text can
// take it for a part of the text: Enter is pressed once more when the program reacted to the first
// one and the text is still in the input box.
func (in *Input) confirm(ctx context.Context, r *agency.Run, text string, entered entry, d agency.Delivery) agency.Delivery {
	if d.Confirmed || entered.sight.Composer == nil {
		return d
	}
	stood, pressed := entered.sight.Holds(text), false
	for begin := time.Now(); ; time.Sleep(takenEvery) {
		sight, err := in.sight(ctx, r)
		in.observer.ReadEvidence(ctx, r.ID)
		l, ok := in.observer.Seen(r.ID)
		if err != nil || !ok {
			return d // the terminal is going away
		}
		holds := sight.Holds(text)
		stood = stood || holds // a slow agent draws the text only after Enter
		reacted := d.Effect == agency.EffectOutput || l.OutputAt.After(entered.at)
		since, limit := time.Since(begin), takenWait
		if !reacted {
			limit = stoppedWait
		}
		switch now := l.AgentState; {
		case !holds && now.PromptAt.After(entered.at):
			return agency.Delivery{Confirmed: true, Effect: agency.EffectPrompt}
		case !holds && stood && sight.Composer != nil && now.Turn == agency.TurnWorking:
			return agency.Delivery{Confirmed: true, Effect: agency.EffectTurn}
		case !holds && now.Turn == agency.TurnUnknown && !status.SpokeForItself(now):
			return d // nothing would show it
		case holds && reacted && !pressed && since >= enterAgain:
			pressed = true
			in.pressAgain(ctx, r, text)
		case since >= limit && holds:
			return agency.Delivery{Effect: agency.EffectComposer, Composer: *sight.Composer}
		case since >= limit:
			return d
		}
	}
}

// pressAgain presses Enter once more, unless the text has left the input box by then.
func (in *Input) pressAgain(ctx context.Context, r *agency.Run, text string) {
	err := in.typeKeys(ctx, r, "\r", func(ctx context.Context) error {
		sight, err := in.clearSight(ctx, r)
		if err == nil && !sight.Holds(text) {
			err = agency.Errorf(agency.CodeInputRefused, "the text is gone from the input box of %s", r.Ref())
		}
		return err
	})
	if err != nil {
		in.log.Debug("press Enter again", "run", r.ID, "err", err)
	}
}

// typeKeys types keys unchanged after a look, which fails if the terminal no longer shows what they
// are for.
func (in *Input) typeKeys(ctx context.Context, r *agency.Run, keys string, look func(context.Context) error) error {
	link, err := in.live.mustLink(ctx, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, keysTimeout,
		agency.Errorf(agency.CodeInputRefused, "the wrapper of %s does not take keys", r.Ref()).WithHint("agency attach %s", r.Ref()))
	defer cancel()
	if err := link.Keys(ctx, keys, func(ctx context.Context, _ agency.Typing) (bool, error) { return false, look(ctx) }); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return byName(err, r)
	}
	return nil
}

// byName adds the name of its run to an error of a wrapper, which knows only the id.
func byName(err error, r *agency.Run) error {
	e, ok := errors.AsType[*agency.Error](err)
	if !ok {
		return err
	}
	id, name := string(r.ID), r.Ref()
	named := *e
	named.Message, named.Hint = strings.ReplaceAll(e.Message, id, name), strings.ReplaceAll(e.Hint, id, name)
	return &named
}

// awaitReady returns when an agent can take a message: a line typed into a dialog would answer the
// dialog, and Enter alone can end some agents. The error is E_INVALID_STATE while the agent waits
// for something that only its terminal can take, and when neither the agent nor its terminal shows
// an input box in time: what it shows then may be a dialog too.
func (in *Input) awaitReady(ctx context.Context, r *agency.Run) error {
	var steady []agency.Evidence // what the terminal shows, and since when
	var since time.Time
	for deadline := time.Now().Add(readyTimeout); ; {
		shown := in.observer.Look(ctx, r.ID)
		l, ok := in.observer.Seen(r.ID)
		if !ok {
			return nil
		}
		if len(l.AgentState.Requests) > 0 {
			return agency.Errorf(agency.CodeInvalidState, "%s waits for an answer in its terminal, and a message would be read as the answer: %s",
				r.Ref(), l.AgentState.Requests[0].Summary()).WithHint("agency attach %s", r.Ref())
		}
		_, began := l.AgentState.Sources[agency.FromTranscript]
		if status.SpokeForItself(l.AgentState) || began || r.Attempt.Headless || !in.harness.ShowsReady(r.Runner) {
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
			return agency.Errorf(agency.CodeInvalidState, "%s shows no input box yet, and the message could go elsewhere", r.Ref()).
				WithHint("agency attach %s", r.Ref())
		}
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
