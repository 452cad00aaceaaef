package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/spool"
)

// hookCall is the input that Claude Code gives its hook before it uses a tool.
const hookCall = `{"session_id":"7ad418f5-22ac-4def-9922-b44f123d2b77","transcript_path":"/nowhere/t.jsonl","cwd":"/","hook_event_name":"PreToolUse",` +
	`"tool_name":"Bash","tool_input":{"command":"make test"},"tool_use_id":"toolu_1"}`

// measureHooks measures what the daemon does with the evidence of many busy agents, and the cost of
// one call of a hook.
func measureHooks(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	var runs []api.Run
	for range b.reps(100, 10) {
		handle, err := w.startRun(ctx, repo, "exec sleep 1000")
		if err != nil {
			return err
		}
		shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: handle})
		if err != nil {
			return err
		}
		runs = append(runs, shown.Run)
	}
	if err := hookFlood(ctx, b, w, runs); err != nil {
		return err
	}
	return hookProcess(ctx, b, w, &runs[0])
}

// cycle returns the evidence of one turn of an agent, so that the state is right only if nothing
// was lost or reordered.
func cycle(n int) agency.Evidence {
	e := agency.Evidence{At: time.Now().UTC(), Source: agency.FromHook, ID: fmt.Sprint(n / 2)}
	switch step := n % 10; {
	case step == 0:
		e.Signal = agency.SignalPrompt
	case step == 9:
		e.Signal = agency.SignalTurnEnded
	case step%2 == 1:
		e.Signal, e.Tool, e.Text = agency.SignalToolStarted, "Bash", "go test ./..."
	default:
		e.Signal, e.ID = agency.SignalToolEnded, fmt.Sprint((n-1)/2)
	}
	return e
}

// hookFlood writes 10,000 pieces of evidence a minute into the files of all runs, and then waits
// until the daemon has read all of it.
func hookFlood(ctx context.Context, b *bench, w *world, runs []api.Run) error {
	const perMinute = 10_000
	each := b.reps(100, 20) // pieces for each run
	pause := time.Minute / perMinute
	before, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	began := time.Now()
	for n := range each {
		for i := range runs {
			if wait := time.Until(began.Add(time.Duration(n*len(runs)+i) * pause)); wait > 0 {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err := spool.Append(filepath.Join(runs[i].RunDir, "attempts", "1", agency.EventsFile), cycle(n)); err != nil {
				return err
			}
		}
	}
	window := time.Since(began)
	// The usage is read before the daemon is asked for its results, which is extra work.
	after, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	for i := range runs {
		if err := awaitHooks(ctx, w, runs[i].Handle, each); err != nil {
			return err
		}
	}
	used := 100 * (after[0].cpu - before[0].cpu).Seconds() / window.Seconds()
	name := fmt.Sprintf("%d hook events a minute from %d runs, ", perMinute, len(runs))
	b.table.add(row{what: name + "daemon's cpu", got: fmt.Sprintf("%.2f %% of a core", used)}, used, atMost(10, " %"))
	return nil
}

// awaitHooks waits until the daemon counts all evidence of a run and shows the status that follows
// from it.
func awaitHooks(ctx context.Context, w *world, handle string, count int) error {
	want := fmt.Sprintf("%d signals", count)
	for deadline := time.Now().Add(10 * time.Second); ; {
		resp, err := api.Call(ctx, w.client, api.ExplainRun, api.RunRequest{Run: handle})
		if err != nil {
			return err
		}
		for _, p := range resp.Explanation.Findings {
			if p.Source == agency.DecidedBy(agency.FromHook) && strings.HasPrefix(p.Says, want) && resp.Run.Status == agency.Waiting {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("an event of %s was lost or moved: it is %s", handle, resp.Run.Status)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hookProcess measures one call of the hook as an agent makes it: from the start of the process to
// its end.
func hookProcess(ctx context.Context, b *bench, w *world, run *api.Run) error {
	var took samples
	env := append(slices.Clip(w.env), "AGENCY_RUN_ID="+string(run.ID), "AGENCY_ATTEMPT=1")
	for range b.reps(200, 20) {
		cmd := exec.CommandContext(ctx, b.agency, "hook", "claude_code")
		cmd.Env, cmd.Stdin, cmd.Stderr = env, bytes.NewReader([]byte(hookCall)), os.Stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("run the hook: %w", err)
		}
		took = append(took, time.Since(began))
	}
	p99 := took.at(0.99)
	b.table.add(row{what: "one hook process", got: took.String() + ", p99 " + ms(p99)}, inMS(took.median()), atMost(30, " ms"))
	return nil
}
