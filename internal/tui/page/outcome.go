package page

import (
	"context"
	"fmt"
	"strings"

	"agency/internal/api"
)

// The functions of this file change a run. caveat is what the user must know about a success, or empty.

// InterruptRun interrupts the agent of a run.
func InterruptRun(ctx context.Context, d *Daemon, run string) (caveat string, err error) {
	resp, err := d.InterruptRun(ctx, api.RunRequest{Run: run})
	switch {
	case err != nil:
		return "", err
	case !resp.Confirmed:
		return "interruption written, and not acknowledged yet", nil
	case resp.Queued > 0:
		return fmt.Sprintf("interrupted; messages that it begins with now: %d", resp.Queued), nil
	}
	return "", nil
}

// SaveRun saves the work of a run in a snapshot.
func SaveRun(ctx context.Context, d *Daemon, run string) (caveat string, err error) {
	resp, err := d.TakeSnapshot(ctx, api.RunRequest{Run: run})
	switch {
	case err != nil:
		return "", err
	case resp.Snapshot == nil:
		return "nothing to save", nil
	}
	left := []string{}
	for _, nested := range resp.Snapshot.Nested {
		left = append(left, nested+" is a repository of its own and is not saved")
	}
	return Warned("saved", left), nil
}

// ResumeRun resumes a run.
func ResumeRun(ctx context.Context, d *Daemon, req api.ResumeRunRequest) (caveat string, err error) {
	resp, err := d.ResumeRun(ctx, req)
	switch {
	case err != nil:
		return "", err
	case !resp.Continued:
		return strings.Join(append([]string{resp.Note}, resp.Warnings...), "; "), nil
	}
	return Warned("continues its conversation", resp.Warnings), nil
}

// Warned returns the caveat that has warnings about something done, or an empty one without warnings.
func Warned(done string, warnings []string) string {
	if len(warnings) == 0 {
		return ""
	}
	return done + "; " + strings.Join(warnings, "; ")
}
