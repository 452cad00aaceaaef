package crash_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	roundsOfALife = 25 // then its world is checked, and another one begins
	livesAtOnce   = 4
	shortSoak     = 60 // kills, in the daily tests
)

// soak counts what happens in worlds that are disturbed in parallel.
type soak struct {
	mu     sync.Mutex
	want   int // kills
	seed   uint64
	lives  int
	rounds int
	hurt   map[string]int // kills and other faults, by what they hit
	ran    map[string]int // clients, by command
	broken int
	short  bool
}

// TestSoak runs up to eight random clients at once in several worlds, while processes and files of
// these worlds are killed, suspended, starved or deleted, and checks from outside after each rest.
// make crash-soak takes the number of kills (N) and repeats a soak (SEED), as far as timing
// permits.
func TestSoak(t *testing.T) {
	s := &soak{want: shortSoak, seed: uint64(time.Now().UnixNano()) % 1_000_000 * 1000, hurt: map[string]int{}, ran: map[string]int{}}
	if n, err := strconv.Atoi(os.Getenv("AGENCY_CRASH_SOAK")); err == nil {
		s.want = n
	} else {
		s.short = true
		t.Parallel()
	}
	if seed, err := strconv.ParseUint(os.Getenv("AGENCY_CRASH_SEED"), 10, 64); err == nil {
		s.seed = seed
	}
	t.Logf("SEED=%d", s.seed)
	begin := time.Now()
	var lives sync.WaitGroup
	for range min(livesAtOnce, 1+s.want/50) {
		lives.Go(func() {
			for seed, more := s.next(); more; seed, more = s.next() {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { newLife(t, s, seed).live() })
				t.Log(s.progress()) // a soak that is ended early has said how far it came
			}
		})
	}
	lives.Wait()
	t.Logf("%s, in %s\nfaults: %s\nclients: %s", s.progress(), time.Since(begin).Round(time.Second), counts(s.hurt), counts(s.ran))
}

func (s *soak) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d kills in %d worlds and %d rounds; %d violations", s.kills(), s.lives, s.rounds, s.broken)
}

// next returns the seed of another life, until there were enough kills.
func (s *soak) next() (seed uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kills() >= s.want || s.broken >= 5 || s.short && s.lives == 2 {
		return 0, false
	}
	s.lives++
	return s.seed + uint64(s.lives) - 1, true
}

// enough reports whether a life may end early.
func (s *soak) enough() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.short && s.kills() >= s.want
}

func (s *soak) kills() int {
	kills := 0
	for fault, n := range s.hurt {
		if strings.HasPrefix(fault, "kill ") {
			kills += n
		}
	}
	return kills
}

func (s *soak) count(of map[string]int, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of[what]++
}

// counts prints how often each occurred, the most frequent first.
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	parts := []string{}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}
