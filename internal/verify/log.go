package verify

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/plain"
)

// youngest is the minimum age of a log that is collected: a check may still write a younger one.
const youngest = 24 * time.Hour

// Collect returns the number and the size of logs of checks that were last written longer ago than
// olderThan, and at least a day ago. It leaves out the logs of the newest verdicts on the work of
// runs that are not removed. With apply it removes the logs; the verdicts stay.
func (v *Verifier) Collect(ctx context.Context, olderThan time.Duration, apply bool) (logs int, bytes int64, err error) {
	shown, err := v.Store.ShownLogs(ctx)
	if err != nil {
		return 0, 0, err
	}
	dir := filepath.Join(v.Home, logsFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return logs, bytes, err
		}
		if !strings.HasPrefix(entry.Name(), agency.CheckPrefix) || shown[path] || v.Now().Sub(info.ModTime()) < max(olderThan, youngest) {
			continue
		}
		if apply {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return logs, bytes, err
			}
		}
		logs++
		bytes += info.Size()
	}
	return logs, bytes, nil
}

// logLimit is how much of a log is read at most, in bytes.
const logLimit = 1 << 20

// Log returns the newest result of a check on the work of a run, and at most limit bytes of the end
// of its output, safe for a terminal; more reports whether there is more. A limit of 0 is 1 MiB.
// The error is E_CHECK_NOT_FOUND when the run has no verdict of such a check.
func (v *Verifier) Log(ctx context.Context, ref, name string, limit int) (run agency.RunID, check agency.CheckResult, output string, more bool, err error) {
	r, err := v.Runs.Resolve(ctx, ref)
	if err != nil {
		return "", check, "", false, err
	}
	checks, err := v.Store.ChecksOf(ctx, r.ID)
	if err != nil {
		return "", check, "", false, err
	}
	names := []string{}
	for _, c := range checks {
		if c.Name == name {
			output, more, err = tail(c.Log, int64(limit))
			return r.ID, c, plain.Visible(output), more, err
		}
		names = append(names, c.Name)
	}
	missing := agency.Errorf(agency.CodeCheckNotFound, "the work of %s has no verdict of a check %q", r.Ref(), name)
	if len(names) > 0 {
		return "", check, "", false, missing.WithHint("it has those of %s", strings.Join(names, ", "))
	}
	return "", check, "", false, missing.WithHint("agency verify %s", r.Ref())
}

// Failed returns the newest check that does not pass on the work of a run at a source, with at most
// limit bytes of the end of its output, safe for a terminal; nil when there is none.
func (v *Verifier) Failed(ctx context.Context, run agency.RunID, source string, limit int) (check *agency.CheckResult, output string, err error) {
	checks, err := v.Store.ChecksOf(ctx, run)
	if err != nil {
		return nil, "", err
	}
	for i := range checks {
		if c := &checks[i]; c.Source == source && c.Verdict != agency.CheckPassed {
			output, _, err = tail(c.Log, int64(limit))
			return c, strings.TrimSpace(plain.Visible(output)), err
		}
	}
	return nil, "", nil
}

// tail returns the end of a file. A missing file counts as empty.
func tail(path string, limit int64) (text string, more bool, err error) {
	if limit <= 0 || limit > logLimit {
		limit = logLimit
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", false, err
	}
	from := max(0, size-limit)
	data := make([]byte, size-from)
	_, err = f.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(data), from > 0, err
}
