// Package scaffold writes agency's files into a worktree: the task, the instructions, the report to
// fill in and the first status.
package scaffold

import (
	_ "embed" // for the templates
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"agency"
	"agency/internal/file"
)

// instructions is the template of what an agent reads about its run and how to report.
//
//go:embed templates/INSTRUCTIONS.md
var instructions string

// Worktree writes everything that a new worktree gets, under .agency in root. Until the runner
// starts it can be repeated, for example after a crash: it writes each file again. The repository
// is not trusted: nothing outside root is ever written. A link or a file in place of a folder, or a
// folder in place of a file, is E_INVALID_PATH, which names it.
func Worktree(root string, prompt []byte, at time.Time) error {
	for _, f := range []struct {
		rel  string
		data []byte
	}{
		{agency.PromptFile, prompt},
		{agency.InstructionsFile, []byte(instructions)},
		{agency.ReportFile, []byte(report)},
	} {
		if err := write(root, f.rel, f.data); err != nil {
			return err
		}
	}
	return Contract(root, at)
}

// Contract writes the first status of an attempt into the worktree in root. It fails as Worktree
// does.
func Contract(root string, at time.Time) error {
	data, err := json.MarshalIndent(agency.NewContract(at), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the first contract: %w", err)
	}
	return write(root, agency.ContractFile, append(data, '\n'))
}

func write(root, rel string, data []byte) error {
	err := file.WriteBeneath(root, rel, data, 0o644)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, file.ErrNotRegular), errors.Is(err, syscall.ENOTDIR), // for a folder
		errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist): // for a file
		return agency.Errorf(agency.CodeInvalidPath, "the repository holds something else where agency keeps its files: %w", err).
			WithHint("take it out of the commit that the run starts from: git rm -r -- %s", agency.DotDir)
	default:
		return fmt.Errorf("write the worktree's %s: %w", rel, err)
	}
}
