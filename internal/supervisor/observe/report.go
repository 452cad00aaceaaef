package observe

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"agency"
	"agency/internal/file"
)

// readReports takes over the agent's reports. An agent writes them into its worktree, the only
// place that it can write to in every sandbox. Each report is taken over once, even after a crash:
// the offset up to which the file was read is in the evidence beside the reports. What cannot be
// stored now is taken over by the next rescan. So is a file that the system fails to read: then
// readReports returns the error.
func (ob *Observer) readReports(ctx context.Context, id agency.RunID) error {
	unlock, err := ob.locks.Lock(ctx, "file "+string(id))
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	defer unlock()
	l, ok := ob.copyOf(id)
	if !ok {
		return nil
	}
	path := filepath.Join(l.worktree, agency.ReportsFile)
	stamp := stampOf(path)
	if stamp == l.reports {
		return nil
	}
	if evidenceWaits(&l) {
		// A daemon that was killed may have taken over reports that its record does not have.
		if all, err := ob.readEvidence(ctx, id); !all {
			return err
		}
		if l, ok = ob.copyOf(id); !ok {
			return nil
		}
	}
	data, err := file.ReadBeneath(l.worktree, agency.ReportsFile, agency.ReportsLimit)
	taken := false
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case agency.Unproven(err):
		return err
	case err != nil:
		taken = ob.keep(ctx, &l, []agency.Evidence{{
			Source: agency.FromReport, Signal: agency.SignalUnknown, Event: "unreadable " + agency.ReportsFile + ": " + whyUnreadable(err),
		}})
	default:
		offset := l.agentState.ReportsOffset
		if l.reports.size > 0 && stamp.size <= l.reports.size {
			offset = 0 // the file was replaced
		}
		taken = ob.takeReports(ctx, &l, newReports(ob.Spool, data, offset, observedAt(path, time.Time{}, ob.Now())))
	}
	if taken {
		ob.change(&l, func(now *liveRun) { now.reports = stamp })
	}
	return nil
}

// takeReports sends reports to the run's owner and adds them to the evidence. When it returns false,
// the caller passes them again later; the owner is not notified twice.
func (ob *Observer) takeReports(ctx context.Context, l *liveRun, reports []agency.Evidence) bool {
	if slices.ContainsFunc(reports, func(e agency.Evidence) bool { return e.Report == agency.ReportsComplete }) {
		ob.outputs.write(ctx, l.id, false)
	}
	for i := range reports {
		if err := ob.Inbox.Report(ctx, l.id, l.attempt, &reports[i]); err != nil {
			ob.Log.Warn("tell the owner of a report", "run", l.id, "err", err)
			if !agency.IsCode(err, agency.CodeLimit) { // a full inbox keeps no report out of the record
				return false
			}
		}
	}
	return ob.keep(ctx, l, reports)
}

// newReports returns the reports after offset, up to the last complete line. A file that is
// shorter, or has no line that begins there, was started again. Every line counts as a report made
// at the time at, whatever it contains.
func newReports(spool Spool, data []byte, offset int64, at time.Time) []agency.Evidence {
	if offset < 0 || offset > int64(len(data)) || offset > 0 && data[offset-1] != '\n' {
		offset = 0
	}
	end := int64(bytes.LastIndexByte(data, '\n') + 1)
	if end <= offset {
		return nil
	}
	reports := spool.Parse(data[offset:end])
	for i := range reports {
		e := &reports[i]
		*e = agency.Evidence{At: at, Source: agency.FromReport, Signal: agency.SignalReport, ID: e.ID, Report: e.Report, Text: e.Text, Quiet: e.Quiet}
		e.Quiet = min(max(e.Quiet, 0), agency.MaxQuiet)
		switch e.Report {
		case agency.ReportsStatus, agency.ReportsError, agency.ReportsComplete, agency.ReportsHelp:
		default:
			*e = agency.Evidence{At: at, Source: agency.FromReport, Signal: agency.SignalUnknown, Event: "unreadable report"}
		}
	}
	if len(reports) > 0 {
		reports[len(reports)-1].Offset = end
	}
	return reports
}
