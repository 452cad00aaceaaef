package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

var (
	headlessSpeed = regexp.MustCompile(`BenchmarkHeadless\S*\s.*?([0-9.]+) MB/s`)
	wireSpeed     = regexp.MustCompile(`BenchmarkWire\S*\s.*?([0-9.]+) frames/s`)
	wireMemory    = regexp.MustCompile(`BenchmarkWire\S*\s.*?([0-9.]+) MiB-own`)
	wireAdoption  = regexp.MustCompile(`BenchmarkWire\S*\s.*?([0-9.]+) ms-adoption`)
	terminalSpeed = regexp.MustCompile(`BenchmarkInteractive\S*\s.*?([0-9.]+) x-bare-loop`)
)

// measureWrapper runs the benchmarks of the wrapper, which compare it with a bare loop that copies
// the same terminal.
func measureWrapper(ctx context.Context, b *bench) error {
	out, _, err := timed(ctx, ".", os.Environ(), "go", "test", "-run", "^$", "-bench", "Headless|Interactive|Wire",
		"-benchtime", fmt.Sprintf("%dx", b.reps(5, 1)), "agency/internal/runner")
	if err != nil {
		return err
	}
	value := func(pattern *regexp.Regexp) (float64, error) {
		m := pattern.FindSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("the benchmark said nothing for %s:\n%s", pattern, out)
		}
		return strconv.ParseFloat(string(m[1]), 64)
	}
	headless, err := value(headlessSpeed)
	if err != nil {
		return err
	}
	terminal, err := value(terminalSpeed)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		what    string
		pattern *regexp.Regexp
		unit    string
		bar     *bar
	}{
		{"mode protocol, 500,000 frames", wireSpeed, "frames/s", atLeast(10_000, " frames/s")},
		{"own memory of a wrapper after them", wireMemory, "MiB", atMost(8, " MiB")},
		{"agent adopted after them", wireAdoption, "ms", atMost(1000, " ms")},
	} {
		got, err := value(r.pattern)
		if err != nil {
			return err
		}
		b.table.add(row{what: r.what, got: fmt.Sprintf("%.4g %s", got, r.unit)}, got, r.bar)
	}
	b.table.add(row{what: "headless, into three logs", got: fmt.Sprintf("%.0f MB/s", headless)}, headless, atLeast(200, " MB/s"))
	b.table.add(row{what: "terminal, against a bare copy", got: fmt.Sprintf("%.2fx", terminal)}, terminal, atLeast(0.8, "x"))
	return nil
}
