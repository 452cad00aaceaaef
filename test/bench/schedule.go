package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/schedule"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
)

// measureSchedule runs chains of real agents, and large plans of agents that take no time.
func measureSchedule(ctx context.Context, b *bench) error {
	if err := startLatency(ctx, b); err != nil {
		return err
	}
	var first float64
	for _, n := range []int{10, 100, 1000} {
		took, err := scheduleInstant(ctx, b, n)
		if err != nil {
			return err
		}
		each := inMS(took) / float64(n)
		if first == 0 {
			first = each
		}
		b.table.add(row{
			what: fmt.Sprintf("%d instant agents, each after up to 100 others", n),
			got:  fmt.Sprintf("%.2f ms for each", each), ratio: fmt.Sprintf("%.2fx of 10", each/first),
		}, each, nil)
	}
	return nil
}

// startLatency measures the time from the end of an agent's program to the start of the program of
// its dependent.
func startLatency(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 50)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	n := b.reps(120, 20)
	var plan strings.Builder
	plan.WriteString("defaults: {runner: shell, headless: true}\nagents:\n")
	for i := range n {
		fmt.Fprintf(&plan, "  - {id: a%d, prompt: 'true'", i)
		if i > 0 {
			fmt.Fprintf(&plan, ", after: [a%d]", i-1)
		}
		plan.WriteString("}\n")
	}
	started, err := api.Call(ctx, w.client, api.StartSession, api.StartSessionRequest{Plan: api.PlanSource{Text: plan.String(), Agents: []string{}}, Dir: repo, Env: w.env})
	if err != nil {
		return err
	}
	done, err := api.Call(ctx, w.client, api.WaitSession, api.WaitSessionRequest{Session: string(started.Session.ID), TimeoutMS: time.Minute.Milliseconds() * 5})
	if err != nil {
		return err
	}
	if done.Session.Status != agency.SessionComplete {
		return fmt.Errorf("the chain of agents is %s: %s", done.Session.Status, done.Session.Summary.String())
	}
	var took, decided samples
	var ended time.Time
	for i := range done.Agents {
		shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: string(done.Agents[i].RunID)})
		if err != nil {
			return err
		}
		var start agency.Start
		var exit agency.Exit
		dir := filepath.Join(shown.Run.RunDir, "attempts", "1")
		if err := errors.Join(readJSON(filepath.Join(dir, "started.json"), &start), readJSON(filepath.Join(dir, "runner_done.json"), &exit)); err != nil {
			return err
		}
		if i > 0 {
			took = append(took, start.StartedAt.Sub(ended))
			decided = append(decided, done.Agents[i].StartedAt.Sub(ended))
		}
		ended = exit.EndedAt
	}
	b.table.add(percentiles("an agent's end -> the start of the one after it", took), inMS(took.at(0.99)), atMost(150, " ms"))
	b.table.add(percentiles("of that, until its start is in the record", decided), inMS(decided.at(0.5)), nil)
	return nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// scheduleInstant measures a plan of n agents that take no time, each after up to a hundred others,
// with the real scheduler and record and with runs in memory.
func scheduleInstant(ctx context.Context, b *bench, n int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(b.root, "schedule")
	if err != nil {
		return 0, err
	}
	store, err := sqlite.Open(ctx, filepath.Join(dir, "agency.db"), time.Now)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	random := rand.New(rand.NewPCG(1, 1))
	plan := &agency.Plan{MaxParallel: 1000, Limits: map[string]int{}, OnFailure: agency.ContinueOnFailure}
	agents := make([]agency.SessionAgent, n)
	s := &agency.Session{
		ID: agency.NewSessionID(time.Now(), [4]byte{1}), Source: "orchestrate", Status: agency.SessionRunning, MaxParallel: 1000, Owner: agency.User,
		StartedAt: time.Now(), Repo: agency.Repo{Fingerprint: "f", Root: dir, CommonDir: dir},
	}
	for i := range n {
		id := fmt.Sprintf("%04d", i)
		p := agency.PlanAgent{ID: id, Name: id, Prompt: "x", Runner: "shell", DoneWhen: agency.DoneWhenExit, After: []string{}}
		for _, j := range random.Perm(i)[:min(i, 100)] {
			p.After = append(p.After, fmt.Sprintf("%04d", j))
		}
		plan.Agents = append(plan.Agents, p)
		agents[i] = agency.SessionAgent{Session: s.ID, Position: i, ID: id, Name: id, Wave: 1, Status: agency.AgentQueued}
	}
	memory := &instant{Store: store, ended: make(map[agency.RunID]bool), changed: make(chan struct{})}
	sched := scheduler.New(scheduler.Deps{
		Store: memory, Runs: memory, Log: slog.New(slog.DiscardHandler), Now: time.Now, Elapsed: time.Since,
		Random: func(into []byte) {
			for i := range into {
				into[i] = byte(random.Uint32())
			}
		},
	}, scheduler.Settings{Home: dir, Starts: 4, Retry: schedule.DefaultRetryPolicy()})
	if err := sched.Start(ctx); err != nil {
		return 0, err
	}
	defer sched.Stop()
	began := time.Now()
	if err := sched.Create(ctx, s, plan, agents, nil); err != nil {
		return 0, err
	}
	if err := untilComplete(ctx, store, s.ID); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// untilComplete waits for the session, and fails when it ends otherwise or stands still.
func untilComplete(ctx context.Context, store *sqlite.Store, id agency.SessionID) error {
	for {
		changed := store.Changed()
		now, err := store.Session(ctx, id)
		if err != nil {
			return err
		}
		if now.Status == agency.SessionComplete {
			return nil
		}
		if now.Status.Final() {
			return fmt.Errorf("the session is %s: %s", now.Status, now.Counts.String())
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			return fmt.Errorf("the session does not go on: %s", now.Counts.String())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// instant is an executor whose runs end the moment they start, and a record that reports them.
type instant struct {
	*sqlite.Store

	mu      sync.Mutex
	ended   map[agency.RunID]bool
	drafts  []agency.RunID
	changed chan struct{}
}

func (x *instant) MayStart(context.Context, scheduler.Start) error { return nil }

func (x *instant) Start(_ context.Context, s scheduler.Start) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended[s.ID] = true
	x.drafts = append(x.drafts, s.ID)
	close(x.changed)
	x.changed = make(chan struct{})
	return nil
}

func (x *instant) Resume(context.Context, scheduler.ResumeRequest) error {
	return errors.ErrUnsupported
}
func (x *instant) Stop(context.Context, agency.RunID, int) error { return errors.ErrUnsupported }
func (x *instant) Activity(context.Context, agency.RunID) (agency.Activity, error) {
	return agency.Activity{}, errors.ErrUnsupported
}

func (x *instant) Result(context.Context, agency.RunID) (string, error) {
	return "", errors.ErrUnsupported
}

func (x *instant) Merge(context.Context, *agency.Session, []string) (string, error) {
	return "", errors.ErrUnsupported
}

func (x *instant) Outcome(_ context.Context, id agency.RunID) (*scheduler.Outcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended[id] {
		return nil, agency.Errorf(agency.CodeRunNotFound, "there is no run %s", id)
	}
	zero := 0
	return &scheduler.Outcome{
		Run:    &agency.Run{ID: id, Attempt: agency.Attempt{Number: 1, State: agency.Completed, ExitCode: &zero}},
		Status: agency.Status{Label: agency.LabelCompleted},
	}, nil
}

// ChangedRuns returns the runs that ended since the last call.
func (x *instant) ChangedRuns(ctx context.Context, _ int64) ([]agency.RunID, int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	drafts := x.drafts
	x.drafts = nil
	return drafts, 0, ctx.Err()
}

func (x *instant) Changed() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changed
}
