// Package queuer carries out what package queue decides: it makes the commits that would land, has
// them checked, and lands what passes. It uses packages lander and verify for this. After a crash,
// each queue continues from the record alone.
package queuer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agency"
	"agency/internal/lander"
	"agency/internal/service"
	"agency/internal/supervisor/keyed"
	"agency/internal/verify"
)

// Store is the record of queues.
type Store interface {
	AddQueueEntry(ctx context.Context, e *agency.QueueEntry) error
	// ChangeQueueEntries lets change edit entries, and writes those for which it returns true.
	ChangeQueueEntries(ctx context.Context, seqs []int64, change func(e *agency.QueueEntry) bool) ([]agency.QueueEntry, error)
	QueueEntries(ctx context.Context, f agency.QueueFilter) ([]agency.QueueEntry, error)
	OpenQueues(ctx context.Context) ([]agency.QueueRef, error)
	Queue(ctx context.Context, ref agency.QueueRef) (*agency.Queue, error)
	ChangeQueue(ctx context.Context, ref agency.QueueRef, change func(q *agency.Queue)) error
	LastSeq(ctx context.Context) (int64, error)
	// ChangedRuns returns the runs with events after seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	Changed() <-chan struct{}
}

// Lander makes the commits that would land, and lands them.
type Lander interface {
	Chain(ctx context.Context, target string, runs []agency.RunID, env agency.Environ, accept lander.Accept) (*lander.Chain, error)
	LandChain(ctx context.Context, target string, links []*lander.Link, env agency.Environ, on, tree string) ([]lander.Result, error)
	// Landed settles the open landings of a run, and returns the one that brought a source into a
	// target since a time; nil for none.
	Landed(ctx context.Context, id agency.RunID, target, source string, since time.Time) (*agency.Landing, error)
	Target(ctx context.Context, r *agency.Run, repo agency.Repo, asked string) (string, error)
}

// Runs finds runs.
type Runs interface {
	Resolve(ctx context.Context, ref string) (*agency.Run, error)
}

// Repos finds the repositories of runs.
type Repos interface {
	Of(ctx context.Context, r *agency.Run) (agency.Repo, error)
}

// Settings are [queue] of the configuration.
type Settings struct {
	Batch    int  // how many entries are checked together at most
	Parallel int  // how many batches are checked at the same time at most
	Approve  bool // agents may approve
	Deny     []string
}

// Input types into the terminals of agents.
type Input interface {
	Send(ctx context.Context, ref, text, promptID string, files ...agency.Attachment) (*agency.Run, agency.Delivery, error)
}

// Inbox delivers messages.
type Inbox interface {
	Send(ctx context.Context, m *agency.Message) (recipients []string, dead string, err error)
}

// Deps are the parts that a Queuer works with.
type Deps struct {
	Store    Store
	Lander   Lander
	Verifier *verify.Verifier
	Runs     Runs
	Repos    Repos
	// Status derives the status of a run.
	Status func(r *agency.Run) agency.Status
	Input  Input
	Inbox  Inbox
	// Flag flags a run because a check does not pass.
	Flag func(ctx context.Context, id agency.RunID, reason string) error
	// FlagConflict flags a run because its work conflicts, and only the user can solve the conflict.
	FlagConflict func(ctx context.Context, id agency.RunID, reason string) error
	// Resume begins another attempt of an ended run with a prompt and an environment, and continues
	// its conversation if it has one.
	Resume func(ctx context.Context, r *agency.Run, prompt string, env []string) error
	// Begin makes a run that continues the work of a removed one, and starts its agent.
	Begin    func(ctx context.Context, b *Beginning) (*agency.Run, error)
	Settings func() Settings
	Home     string // data root: queues/ in it holds the environment of the checks
	Log      *slog.Logger
}

// Queuer works on all landing queues of one data root. All methods may be called from several
// goroutines.
type Queuer struct {
	Deps
	work     service.Background
	environs sync.Mutex  // held from storing the environment of checks until the entry that needs it is written
	moves    keyed.Locks // held while entries land, and while the user changes one or pauses the queue; by moveKey

	mu    sync.Mutex
	ctx   context.Context           // nil while stopped
	lines map[agency.QueueRef]*line // the queues that are worked on
}

// moveKey returns the name of the lock of a queue in Queuer.moves.
func moveKey(ref agency.QueueRef) string { return ref.Repo + ":" + ref.Target }

// New returns a Queuer that does nothing until Start.
func New(deps Deps) *Queuer {
	return &Queuer{Deps: deps, lines: map[agency.QueueRef]*line{}}
}

// Start continues every queue that has entries, from the record alone, until Stop.
func (q *Queuer) Start(ctx context.Context) error {
	return q.work.Start(ctx, func(ctx context.Context) error {
		open, err := q.Store.OpenQueues(ctx)
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.ctx = ctx
		q.mu.Unlock()
		for _, ref := range open {
			q.wake(ref, false)
		}
		return nil
	})
}

// Stop ends the work on all queues, checks included, and waits for it.
func (q *Queuer) Stop() {
	q.mu.Lock()
	q.ctx = nil
	q.mu.Unlock()
	q.work.Stop()
}

// wake makes a queue look again, and starts the work on it if needed. With anew, failed checks run
// once more before they count.
func (q *Queuer) wake(ref agency.QueueRef, anew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx == nil {
		return // the next daemon continues
	}
	l, there := q.lines[ref]
	if !there {
		l = &line{Queuer: q, ref: ref, known: map[string]*verdict{}, woken: make(chan struct{}, 1)}
		q.lines[ref] = l
		ctx := q.ctx
		q.work.Go(func() { l.run(ctx) })
	}
	l.anew = l.anew || anew
	select {
	case l.woken <- struct{}{}:
	default: // a look is requested already
	}
}

// leave ends the work on a queue, unless it was woken meanwhile.
func (l *line) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.woken) > 0 {
		return false
	}
	delete(l.lines, l.ref)
	return true
}

// forget reports whether the queue was woken with anew since the last call.
func (l *line) forget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	anew := l.anew
	l.anew = false
	return anew
}

// Times between two looks at a queue that waits.
const (
	// lookEvery is for changes without an event: the target and its checkout belong to the user.
	lookEvery = 5 * time.Second
	// lookAgain is the minimum time after a look that an event of a run caused.
	lookAgain = 500 * time.Millisecond
	// lookSlower multiplies both while checks run, to leave the machine to them.
	lookSlower = 6
)

// run works on a queue until it is empty or ctx ends.
func (l *line) run(ctx context.Context) {
	for ctx.Err() == nil {
		if l.forget() {
			l.distrust()
		}
		seq, err := l.Store.LastSeq(ctx)
		var acted, empty bool
		if err == nil {
			acted, empty, err = l.step(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.Log.Warn("work on a queue", "target", l.ref.Target, "err", err)
			l.note(ctx, words(err))
		}
		if empty && l.leave() {
			l.dropEnv(ctx, l.ref.Repo)
			return
		}
		if !acted {
			l.wait(ctx, seq)
		}
	}
}

// wait returns when a run of the queue changed after seq, the queue was woken, or some time has
// passed.
func (l *line) wait(ctx context.Context, seq int64) {
	slower := time.Duration(1)
	if len(l.running) > 0 {
		slower = lookSlower
	}
	timer, soon := time.NewTimer(slower*lookEvery), time.NewTimer(slower*lookAgain)
	defer timer.Stop()
	defer soon.Stop()
	select {
	case <-l.woken:
		return
	case <-soon.C:
	case <-ctx.Done():
		return
	}
	for {
		changed := l.Store.Changed()
		ids, newest, err := l.Store.ChangedRuns(ctx, seq)
		if err != nil || l.concerns(ids) {
			return
		}
		seq = newest
		select {
		case <-changed:
		case <-l.woken:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
