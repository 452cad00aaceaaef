// Command bench measures the limits of docs/benchmarks.md on this machine, each beside its
// comparison, in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) == 3 && os.Args[1] == asks {
		if err := askForever(os.Stdin, os.Stdout, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		return 0
	}
	program := flag.String("agency", "bin/agency", "the `program` to measure")
	quick := flag.Bool("quick", false, "a small pass: fewer repetitions, no 20,000 files, no 10,000 runs")
	only := flag.String("only", "", "measure this `section` alone: "+strings.Join(names(), ", "))
	compare := flag.String("compare", "", "build this `commit` too, and measure both programs in turns")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := measure(ctx, *program, *quick, *only, *compare); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; everything that was started is ended")
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// bench is one pass over the sections.
type bench struct {
	agency string // absolute path of the program
	root   string // folder of everything that is made
	quick  bool
	table  *table
}

// reps returns the number of repetitions.
func (b *bench) reps(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// section is a part of the table.
type section struct {
	name, title string
	run         func(context.Context, *bench) error
	asked       bool // it is measured only when it is asked for
}

func sections() []section {
	return []section{
		{"program", "the program itself", measureProgram, false},
		{"create", "create: agency run until it returns, against git worktree add + tmux new-session", measureCreate, false},
		{"sandbox", "create in a sandbox, against the level worktree", measureSandbox, false},
		{"land", "bring work home: agency merge, against plain git", measureLand, false},
		{"list", "look: whole processes, median (fastest)", measureList, false},
		{"tui", "the dashboard, 160 by 50", measureTUI, false},
		{"idle", "idle daemon", measureIdle, false},
		{"adopt", "live wrappers come back to a daemon that starts after a kill", measureAdopt, false},
		{"first", "the first answer after a kill", measureFirst, false},
		{"hooks", "evidence of busy agents", measureHooks, false},
		{"watchdog", "a run needs the user", measureWatchdog, false},
		{"wrapper", "wrapper throughput", measureWrapper, false},
		{"latency", "from a change to a client that waits for it", measureLatency, false},
		{"protocol", "requests of an agent in the mode protocol", measureProtocol, false},
		{"session", "session updates by external writers, against the lock and the file that they replace", measureSessions, false},
		{"schedule", "sessions: from one agent to the next, and large plans", measureSchedule, false},
		{"scale", "how each cost grows with the live runs", measureScale, false},
		{"record", "how each cost grows with the ended runs in the record", measureRecord, false},
		{"peers", "beside other programs that run coding agents; the comparison is agency", measurePeers, true},
	}
}

func names() []string {
	names := []string{}
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

func measure(ctx context.Context, program string, quick bool, only, compare string) (err error) {
	if only != "" && !slices.Contains(names(), only) {
		return fmt.Errorf("there is no section %q; there are %s", only, strings.Join(names(), ", "))
	}
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	// The path is short because that of a unix socket must fit in 104 bytes.
	root, err := os.MkdirTemp("/tmp", "agb")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return err
	}
	b := &bench{agency: filepath.Join(root, "agency"), root: root, quick: quick, table: &table{}}
	if err := copyProgram(program, b.agency); err != nil {
		return err
	}
	other := ""
	if compare != "" {
		built, err := build(ctx, root, compare)
		if err != nil {
			return err
		}
		other = filepath.Join(root, "other")
		if err := copyProgram(built, other); err != nil {
			return err
		}
	}
	began := time.Now()
	fmt.Printf("%s, %s/%s, %d cores\n", began.Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, s := range sections() {
		switch {
		case only == "" && s.asked, only != "" && only != s.name:
		case other != "":
			err = b.inTurns(ctx, s, compare, other)
		default:
			if err = s.run(ctx, b); err == nil {
				err = b.table.print(os.Stdout, s.title)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	took := time.Since(began).Round(time.Second)
	if other != "" {
		fmt.Printf("\ntook %s\n", took)
		return nil
	}
	fmt.Printf("\n%d missed; took %s\n", b.table.missed, took)
	return nil
}
