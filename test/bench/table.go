package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line: what was measured, its comparison, and the limit.
type row struct {
	what   string
	got    string
	beside string
	ratio  string
	bar    string
	value  float64 // 0: without a comparison
}

// table collects the rows of one section.
type table struct {
	rows   []row
	missed int
}

// bar is a limit on a value.
type bar struct {
	limit   float64
	atLeast bool // else at most
	unit    string
}

func atMost(limit float64, unit string) *bar  { return &bar{limit: limit, unit: unit} }
func atLeast(limit float64, unit string) *bar { return &bar{limit: limit, unit: unit, atLeast: true} }

// add appends a row and compares value with bar, which may be nil.
func (t *table) add(r row, value float64, b *bar) {
	if b != nil {
		r.bar = t.verdict(value, b)
	}
	r.value = value
	t.rows = append(t.rows, r)
}

func (t *table) verdict(value float64, b *bar) string {
	signal, over := "<=", value/b.limit-1
	if b.atLeast {
		signal, over = ">=", 1-value/b.limit
	}
	text := fmt.Sprintf("%s %g%s: ", signal, b.limit, b.unit)
	if value == b.limit || over <= 0 {
		return text + "pass"
	}
	t.missed++
	if b.limit == 0 {
		return text + "missed"
	}
	return text + fmt.Sprintf("missed by %.0f %%", over*100)
}

// print writes the rows and forgets them.
func (t *table) print(out io.Writer, title string) error {
	_, _ = fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range t.rows {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", r.what, r.got, orDash(r.beside), orDash(r.ratio), orDash(r.bar))
	}
	t.rows = nil
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// samples are durations of the same operation.
type samples []time.Duration

// at returns the value below which the share q of the samples lies.
func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s samples) median() time.Duration { return s.at(0.5) }

// String returns the median and the fastest.
func (s samples) String() string { return fmt.Sprintf("%s (%s)", ms(s.median()), ms(s.at(0))) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", inMS(d)) }

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
