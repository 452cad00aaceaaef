package sqlite_test

import (
	"context"
	"fmt"
	"testing"

	"agency"
	"agency/internal/sqlite"
)

// fill creates n runs in the state of a working agent.
func fill(b *testing.B, s *sqlite.Store, n int, state agency.State) {
	b.Helper()
	// Only this filling is not durable.
	if _, err := s.Writer().Exec("PRAGMA synchronous = OFF"); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		r := newRun(i)
		r.Name = fmt.Sprintf("fix-%d", i)
		r.Attempt = fullRun(i).Attempt
		r.Attempt.State, r.Attempt.EndedAt, r.Attempt.ExitCode, r.Attempt.Reported.Problem = state, nil, nil, ""
		create(b, s, r)
	}
	if _, err := s.Writer().Exec("PRAGMA synchronous = FULL"); err != nil {
		b.Fatal(err)
	}
}

func benchmarkRuns(b *testing.B, total int, f agency.Filter, want int) {
	b.Helper()
	s := setup(b)
	fill(b, s, total, agency.Completed)
	for b.Loop() {
		runs, err := s.Runs(context.Background(), f)
		if err != nil || len(runs) != want {
			b.Fatalf("%d runs, %v", len(runs), err)
		}
	}
}

func BenchmarkRuns1000(b *testing.B) { benchmarkRuns(b, 1000, agency.Filter{}, 1000) }
func BenchmarkRuns1000Of10000(b *testing.B) {
	benchmarkRuns(b, 10_000, agency.Filter{Limit: 1000}, 1000)
}

func BenchmarkRunsLiveOf10000(b *testing.B) { benchmarkRuns(b, 10_000, agency.Filter{Live: true}, 0) }

func BenchmarkRunsTagOf10000(b *testing.B) { benchmarkRuns(b, 10_000, agency.Filter{Tag: "none"}, 0) }

func BenchmarkMatchRunsOf10000(b *testing.B) {
	s := setup(b)
	fill(b, s, 10_000, agency.Completed)
	for b.Loop() {
		runs, err := s.MatchRuns(context.Background(), "fix-", 10)
		if err != nil || len(runs) != 10 {
			b.Fatalf("%d runs, %v", len(runs), err)
		}
	}
}

func BenchmarkChangeRun(b *testing.B) {
	s := setup(b)
	fill(b, s, 1000, agency.Running)
	id := newRun(500).ID
	for i := 0; b.Loop(); i++ {
		change(b, s, id, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Attempt.Reported.Contract.Summary = fmt.Sprint("step ", i)
			return []agency.EventDraft{{Type: agency.ContractChanged}}, nil
		})
	}
}
