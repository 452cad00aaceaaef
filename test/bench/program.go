package main

import (
	"context"
	"errors"
	"io"
	"os"
)

// copyProgram copies the program to a new file, as an installation does. One that the linker has
// just written starts slower, because its pages are in memory one by one.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// measureProgram measures the size of the program and the start of a process, beside that of true.
func measureProgram(ctx context.Context, b *bench) error {
	info, err := os.Stat(b.agency)
	if err != nil {
		return err
	}
	b.table.add(row{what: "binary size", got: mib(info.Size())}, float64(info.Size())/1e6, atMost(25, " MB"))

	commands := [][]string{{"true"}, {b.agency, "version"}, {b.agency, "--help"}}
	took := make([]samples, len(commands))
	for range b.reps(100, 20) {
		for n, argv := range commands {
			_, d, err := timed(ctx, b.root, plainEnv(b.root), argv...)
			if err != nil {
				return err
			}
			took[n] = append(took[n], d)
		}
	}
	for n, what := range []string{1: "agency version", 2: "agency --help"} {
		if n > 0 {
			b.table.add(row{what: what, got: took[n].String(), beside: "true: " + took[0].String()}, inMS(took[n].median()), atMost(5, " ms"))
		}
	}
	return nil
}
