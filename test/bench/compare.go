package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// rounds is the number of measurements of each of two programs.
const rounds = 3

// build builds the program of a commit in a folder below root, without changing the repository, and
// returns its path.
func build(ctx context.Context, root, commit string) (string, error) {
	source, program := filepath.Join(root, "source"), filepath.Join(root, "built")
	if err := os.Mkdir(source, 0o700); err != nil {
		return "", err
	}
	archive := filepath.Join(root, "source.tar")
	for _, c := range []struct {
		dir  string
		argv []string
	}{
		{".", []string{"git", "archive", "--output=" + archive, "--end-of-options", commit}},
		{source, []string{"tar", "-xf", archive}},
		{source, []string{"go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/agency"}},
	} {
		cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", commit, err, out)
		}
	}
	return program, nil
}

// inTurns measures a section with both programs, one after the other, several times, and prints the
// medians of each row beside each other. The programs alternate in which is first. A section that the
// other program cannot do is told with the reason and left out: an older one does not read records
// that this program filled.
func (b *bench) inTurns(ctx context.Context, s section, commit, other string) error {
	programs := [2]string{b.agency, other}
	defer func() { b.agency = programs[0] }()
	var measured [2]comparison
	for round := range rounds {
		for _, side := range []int{round % 2, 1 - round%2} {
			b.agency, b.table = programs[side], &table{}
			err := s.run(ctx, b)
			if err != nil && side == 1 && ctx.Err() == nil {
				fmt.Printf("\n%s is left out: %s cannot do it: %v\n", s.title, commit, err)
				return nil
			}
			if err != nil {
				return err
			}
			measured[side].add(b.table.rows)
		}
	}
	return printCompared(os.Stdout, s.title, commit, measured)
}

// comparison holds the values of the rows of one program, by the row's subject.
type comparison struct {
	order  []string
	values map[string][]float64
}

func (c *comparison) add(rows []row) {
	if c.values == nil {
		c.values = map[string][]float64{}
	}
	for _, r := range rows {
		if r.value == 0 {
			continue
		}
		if len(c.values[r.what]) == 0 {
			c.order = append(c.order, r.what)
		}
		c.values[r.what] = append(c.values[r.what], r.value)
	}
}

func (c *comparison) median(what string) (float64, bool) {
	values := slices.Sorted(slices.Values(c.values[what]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}

// printCompared writes the rows that both programs have. A ratio above 1 is a larger value of this
// program.
func printCompared(out io.Writer, title, commit string, measured [2]comparison) error {
	_, _ = fmt.Fprintf(out, "\n%s, this program beside %s, medians of %d\n", title, commit, rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, what := range measured[0].order {
		ours, _ := measured[0].median(what)
		theirs, both := measured[1].median(what)
		if !both {
			continue
		}
		_, _ = fmt.Fprintf(w, "  %s\t%.4g\t%.4g\t%.2fx\n", what, ours, theirs, ours/theirs)
	}
	return w.Flush()
}
