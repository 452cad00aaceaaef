package observe

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/file"
)

// Limits of a run's output, in bytes.
const (
	// OutputLimit is the largest output.
	OutputLimit = 1 << 20
	// answerLimit is how much of the end of the evidence is searched for the last answer.
	answerLimit = 4 << 20
)

// explainLines and explainBytes are how much of an attempt's evidence file an explanation quotes.
const (
	explainLines = 20
	explainBytes = 64 << 10
)

// outputs writes the outputs of runs: output.md.
type outputs struct {
	store    Store
	spool    Spool
	unfilled func(report []byte) bool
	log      *slog.Logger
}

// OutputPath returns the path of a run's output.md.
func OutputPath(r *agency.Run) string { return filepath.Join(r.Dir, "output.md") }

// write saves the output of a run as output.md in its directory: the report that the agent filled
// in, or else its last answer. It is called before the record shows that an agent offers its work
// or has ended, so that a client that waits for that finds the file. An answer counts only when
// final is set, because an agent that offers its work is about to give another answer. What cannot
// be read leaves the file as it is.
func (op *outputs) write(ctx context.Context, id agency.RunID, final bool) {
	r, err := op.store.Run(ctx, id)
	if err != nil {
		op.log.Warn("read the run of an output", "run", id, "err", err)
		return
	}
	output := op.output(r, final)
	if len(output) == 0 {
		return
	}
	if err := file.WriteAtomic(OutputPath(r), output); err != nil {
		op.log.Warn("write output.md", "run", id, "err", err)
	}
}

// output returns the output of the newest attempt. A report that was filled in before the attempt
// began belongs to an older attempt; an answer of this one is better.
func (op *outputs) output(r *agency.Run, final bool) []byte {
	report, err := file.ReadBeneath(r.Worktree, agency.ReportFile, OutputLimit)
	if err != nil || op.unfilled(report) {
		report = nil
	}
	if report != nil && (r.Attempt.Number == 1 || !ChangeTime(filepath.Join(r.Worktree, agency.ReportFile)).Before(begun(r))) {
		return report
	}
	if !final {
		return nil
	}
	if answer := op.lastAnswer(r); answer != "" {
		return append([]byte(answer), '\n')
	}
	return report
}

// begun returns when the newest attempt began, by the kernel's clock where that is behind the
// daemon's, which never runs backwards: the link to the logs is created again for each attempt.
func begun(r *agency.Run) time.Time {
	at := r.Attempt.CreatedAt
	if linked := ChangeTime(filepath.Join(r.Dir, "logs")); !linked.IsZero() && linked.Before(at) {
		return linked
	}
	return at
}

// lastAnswer returns the last message of the agent in its newest attempt, as its hook or stream
// reported it.
func (op *outputs) lastAnswer(r *agency.Run) string {
	path := filepath.Join(AttemptDir(r.Dir, r.Attempt.Number), agency.EventsFile)
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	answer := ""
	for offset := max(0, info.Size()-answerLimit); offset < info.Size(); {
		evidence, next, err := op.spool.Tail(path, offset)
		if err != nil || next <= offset {
			break
		}
		for i := range evidence {
			if e := &evidence[i]; e.Signal == agency.SignalTurnEnded && e.Subagent == "" && e.Text != "" {
				answer = e.Text
			}
		}
		offset = next
	}
	return answer
}

// offered saves the report of an agent that offers its work with a new status, or with the same
// status again.
func (ob *Observer) offered(ctx context.Context, l *liveRun, reading agency.Observed, stamp fileStamp) {
	if reading.Contract == nil || reading.Contract.Status != agency.ReportedReadyForReview {
		return
	}
	r, err := ob.Store.Run(ctx, l.id)
	if err == nil && (!sameReported(r.Attempt.Reported, reading) || ob.wroteAgain(l, r.Attempt.Reported.At, stamp, reading.At)) {
		ob.outputs.write(ctx, l.id, false)
	}
}

// answered saves the answer of a turn that ended, if the agent offers it as its work.
func (op *outputs) answered(ctx context.Context, id agency.RunID, agentState *agency.AgentState) {
	r, err := op.store.Run(ctx, id)
	if err != nil {
		return
	}
	c, said := r.Attempt.Reported.Contract, agentState.Reported
	if c != nil && c.Status == agency.ReportedReadyForReview || said != nil && said.Report == agency.ReportsComplete {
		op.write(ctx, id, true)
	}
}

// newest returns the last lines of the evidence file of a run's newest attempt; none if the file is
// gone or cannot be read.
func (op *outputs) newest(r *agency.Run) []agency.Evidence {
	path := filepath.Join(AttemptDir(r.Dir, r.Attempt.Number), agency.EventsFile)
	from := max(0, stampOf(path).size-explainBytes)
	evidence, _, err := op.spool.Tail(path, from)
	if err != nil {
		op.log.Warn("read evidence", "run", r.ID, "err", err)
	}
	if from > 0 && len(evidence) > 0 {
		evidence = evidence[1:] // an incomplete line
	}
	return evidence[max(0, len(evidence)-explainLines):]
}
