package main

import (
	"context"
	"os"
)

// measureProgram measures the size of the program and the start of a process.
func measureProgram(ctx context.Context, b *bench) error {
	info, err := os.Stat(b.agency)
	if err != nil {
		return err
	}
	b.table.add(row{what: "binary size", got: mib(info.Size())}, float64(info.Size())/1e6, atMost(25, " MB"))

	var ours, bare samples
	env := plainEnv(b.root)
	for range b.reps(100, 20) {
		_, took, err := timed(ctx, b.root, env, "true")
		if err != nil {
			return err
		}
		bare = append(bare, took)
		if _, took, err = timed(ctx, b.root, env, b.agency, "version"); err != nil {
			return err
		}
		ours = append(ours, took)
	}
	b.table.add(row{what: "agency version", got: ours.String(), beside: "true: " + bare.String()}, inMS(ours.median()), atMost(8, " ms"))
	return nil
}
