package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"agency"
)

// measureTUI measures the dashboard as a user gets it: the program on a terminal of 160 by 50.
func measureTUI(ctx context.Context, b *bench) error {
	if err := manyRuns(ctx, b); err != nil {
		return err
	}
	return liveTerminals(ctx, b)
}

// The terminal of the user.
const (
	tuiColumns = 160
	tuiRows    = 50
)

// manyRuns measures the dashboard with a thousand live runs.
func manyRuns(ctx context.Context, b *bench) error {
	return withLive(ctx, b, func(w *world, f *filling) error {
		if err := firstFrames(ctx, b, w, f); err != nil {
			return err
		}
		return atWork(ctx, b, w, f)
	})
}

// firstFrames measures from the start of the process to the first frame with runs.
func firstFrames(ctx context.Context, b *bench, w *world, f *filling) error {
	var took samples
	for i := range b.reps(20, 5) + 1 {
		d, err := openDashboard(ctx, w, f.repo)
		if err != nil {
			return err
		}
		at, err := d.until(ctx, "fix-login-")
		d.close()
		if err != nil {
			return err
		}
		if i > 0 { // the first one warms up
			took = append(took, at.Sub(d.began))
		}
	}
	b.table.add(row{what: fmt.Sprintf("start to the first frame, %d runs", len(f.runs)), got: took.String()}, inMS(took.median()), atMost(80, " ms"))
	return nil
}

// atWork measures one dashboard while its user moves, while nothing happens, and while much does.
func atWork(ctx context.Context, b *bench, w *world, f *filling) error {
	if _, err := ask(&f.runs[0], probe(0)); err != nil { // the one that needs the user is on top
		return err
	}
	d, err := openDashboard(ctx, w, f.repo)
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.until(ctx, probe(0)); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *bench, *dashboard, *filling) error{keysToFrames, atRest, eventsToFrames} {
		if _, _, err := d.quiet(ctx, time.Second); err != nil {
			return err
		}
		if err := measure(ctx, b, d, f); err != nil {
			return err
		}
	}
	after, err := usageOf([]int{d.cmd.Process.Pid})
	if err != nil {
		return err
	}
	b.table.add(row{what: "memory (RSS) after all that", got: mib(after[0].rss)}, float64(after[0].rss)/(1<<20), atMost(40, " MiB"))
	return nil
}

// keysToFrames moves the cursor through the list, with pauses as a user makes them, and measures from
// each key to the first bytes after it.
func keysToFrames(ctx context.Context, b *bench, d *dashboard, _ *filling) error {
	var took samples
	most, sum := 0, 0
	for i := range b.reps(500, 100) {
		if err := pause(ctx, time.Duration(rand.IntN(16))*time.Millisecond); err != nil { // against the clock of its frames
			return err
		}
		key := "j"
		if i%60 >= 30 {
			key = "k"
		}
		began := time.Now()
		if err := d.press(key); err != nil {
			return err
		}
		first, size, err := d.quiet(ctx, 150*time.Millisecond)
		if err != nil {
			return err
		}
		if size == 0 {
			return fmt.Errorf("key %d, %s, wrote nothing", i, key)
		}
		took, most, sum = append(took, first.Sub(began)), max(most, size), sum+size
	}
	b.table.add(percentiles("key to its frame", took), inMS(took.at(0.99)), atMost(33, " ms"))
	each := float64(sum) / float64(len(took))
	b.table.add(row{what: "bytes of a key, on average", got: fmt.Sprintf("%.0f, most %d", each, most)}, each, atMost(400, ""))
	return nil
}

// atRest measures what a dashboard costs while nothing changes.
func atRest(ctx context.Context, b *bench, d *dashboard, _ *filling) error {
	window := time.Duration(b.reps(15, 5)) * time.Second
	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < window+time.Second { // then the ages change
		if _, err := d.during(ctx, left+time.Second); err != nil {
			return err
		}
	}
	before, err := usageOf([]int{d.cmd.Process.Pid})
	if err != nil {
		return err
	}
	size, err := d.during(ctx, window)
	if err != nil {
		return err
	}
	after, err := usageOf([]int{d.cmd.Process.Pid})
	if err != nil {
		return err
	}
	used := 100 * (after[0].cpu - before[0].cpu).Seconds() / window.Seconds()
	b.table.add(row{what: fmt.Sprintf("at rest for %s, cpu", window), got: fmt.Sprintf("%.3f %% of a core", used)}, used, atMost(0.1, " %"))
	b.table.add(row{what: "the same, bytes", got: fmt.Sprint(size)}, float64(size), atMost(0, ""))
	return nil
}

// eventsToFrames changes the run at the top now and then, while a hundred changes of other runs come
// each second, and measures until the change is on the screen.
func eventsToFrames(ctx context.Context, b *bench, d *dashboard, f *filling) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := make(chan error, 1)
	go func() { broken <- changeOften(ctx, f.runs[500:]) }()
	if err := pause(ctx, 5*time.Second); err != nil { // each has been at work once
		return err
	}
	var took samples
	for i := range b.reps(100, 20) {
		if _, err := d.during(ctx, 150*time.Millisecond+time.Duration(rand.IntN(100))*time.Millisecond); err != nil {
			return err
		}
		began, err := ask(&f.runs[0], probe(i+1))
		if err != nil {
			return err
		}
		at, err := d.until(ctx, probe(i+1))
		if err != nil {
			return err
		}
		took = append(took, at.Sub(began))
	}
	size, err := d.during(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	cancel()
	if err := <-broken; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	b.table.add(percentiles("a change to its frame, at 100 changes a second", took), inMS(took.at(0.99)), atMost(100, " ms"))
	b.table.add(row{what: "bytes in 5 s of changes that are not seen", got: fmt.Sprint(size)}, float64(size), atMost(64, ""))
	return nil
}

// changeOften changes one run after the other, a hundred each second, until ctx ends.
func changeOften(ctx context.Context, runs []agency.Run) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			if _, err := replaceContract(runs[n%len(runs)].Worktree, fmt.Sprintf("Step %d", n)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// probe returns a text no letter of which is where the text before had the same, so that a terminal
// gets all of it.
func probe(n int) string {
	first := []rune("aA")[n%2]
	return strings.Map(func(digit rune) rune { return first + digit - '0' }, fmt.Sprintf("%08d", n))
}

// liveTerminals measures the dashboard with agents that write: a large difference, and a terminal
// that scrolls, over ssh.
func liveTerminals(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	const script = `i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo "$i zqxjkvw"; done >large.txt
while :; do i=$((i+1)); echo "● Bash(go test -run Test$i ./...)"; sleep 0.05; echo "   ok  a package that was tested in $i ms"; sleep 0.05; echo "Next: $i more steps, and a summary"; sleep 0.05; done`
	if _, err := w.startRun(ctx, repo, script); err != nil {
		return err
	}
	d, err := openDashboard(ctx, w, repo, "SSH_TTY=/dev/pts/0")
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.until(ctx, "more steps"); err != nil {
		return err
	}
	const window = 10 * time.Second
	size, err := d.during(ctx, window)
	if err != nil {
		return err
	}
	rate := float64(size) / window.Seconds() / 1000
	b.table.add(row{what: "a terminal that scrolls 20 lines a second, over ssh", got: fmt.Sprintf("%.1f KB/s", rate)}, rate, atMost(8, " KB/s"))
	var took samples
	for range b.reps(20, 5) {
		began := time.Now()
		if err := d.press("d"); err != nil {
			return err
		}
		at, err := d.until(ctx, "zqxjkvw")
		if err != nil {
			return err
		}
		took = append(took, at.Sub(began))
		if err := d.press("q"); err != nil {
			return err
		}
		if _, err := d.until(ctx, "attach"); err != nil { // in the keys of the list
			return err
		}
	}
	b.table.add(row{what: "d to the first hunk of 10,000 lines", got: took.String()}, inMS(took.median()), atMost(200, " ms"))
	return nil
}
