package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// makeRepo makes a git repository with that many small files.
func makeRepo(ctx context.Context, b *bench, files int) (string, error) {
	repo, err := os.MkdirTemp(b.root, fmt.Sprintf("repo-%d-", files)) // each section has its own
	if err != nil {
		return "", err
	}
	for i := range files {
		dir := filepath.Join(repo, fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", err
			}
		}
		text := fmt.Sprintf("package d\n\n// F%d is one of many.\nfunc F%d() int { return %d }\n", i, i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d.go", i)), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	env := plainEnv(b.root)
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		{"git", "config", "user.name", "bench"},
		{"git", "config", "user.email", "bench@example.com"},
		{"git", "add", "."},
		{"git", "commit", "-q", "-m", "files"},
	} {
		if _, _, err := timed(ctx, repo, env, argv...); err != nil {
			return "", err
		}
	}
	return repo, nil
}
