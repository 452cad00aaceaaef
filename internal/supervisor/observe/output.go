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

// Limits of what a run came to, in bytes.
const (
	// OutputLimit is how large it may be.
	OutputLimit = 1 << 20
	// answerLimit is how much of the end of the evidence is looked through for the last answer.
	answerLimit = 4 << 20
)

// explainLines is how much of an attempt's evidence file an explanation quotes, in lines and in
// bytes.
const (
	explainLines = 20
	explainBytes = 64 << 10
)

// outputs writes what runs came to.
type outputs struct {
	store    Store
	spool    Spool
	unfilled func(report []byte) bool
	log      *slog.Logger
}

// OutputPath returns the path of what a run came to.
func OutputPath(r *agency.Run) string { return filepath.Join(r.Dir, "output.md") }

// write keeps what a run came to as output.md in its directory: the report that the agent filled
// in, or else its last answer. It is called before the record says that an agent offers its work or
// has ended, so that who waits for that finds it. An answer counts only when it is final: the agent
// that offers its work is about to give another. What cannot be read leaves the file as it is.
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

// output is what the newest attempt came to. A report that was filled in before the attempt began
// is the word of an older one: an answer of this one is better.
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

// begun is when the newest attempt began, by the kernel's clock where that is behind the daemon's,
// which never runs backwards: the link to the logs is made anew for each attempt.
func begun(r *agency.Run) time.Time {
	at := r.Attempt.CreatedAt
	if linked := ChangeTime(filepath.Join(r.Dir, "logs")); !linked.IsZero() && linked.Before(at) {
		return linked
	}
	return at
}

// lastAnswer is the last message of the agent in its newest attempt, as its hook or stream told it.
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

// offered keeps the report of an agent that offers its work by a new word, or by the same once
// more.
func (op *outputs) offered(ctx context.Context, l *liveRun, word agency.Observed, stamp fileStamp) {
	if word.Contract == nil || word.Contract.Status != agency.ReportedReadyForReview {
		return
	}
	r, err := op.store.Run(ctx, l.id)
	if err == nil && (!sameWord(r.Attempt.Word, word) || wroteAgain(l, r.Attempt.Word.At, stamp, word.At)) {
		op.write(ctx, l.id, false)
	}
}

// answered keeps the answer of a turn that ended, if the agent offers it as its work.
func (op *outputs) answered(ctx context.Context, id agency.RunID, agentState *agency.AgentState) {
	r, err := op.store.Run(ctx, id)
	if err != nil {
		return
	}
	c, said := r.Attempt.Word.Contract, agentState.Reported
	if c != nil && c.Status == agency.ReportedReadyForReview || said != nil && said.Report == agency.ReportsComplete {
		op.write(ctx, id, true)
	}
}

// newest are the last lines of the evidence file of a run's newest attempt. It may be gone, or be
// anything: then there are none.
func (op *outputs) newest(r *agency.Run) []agency.Evidence {
	path := filepath.Join(AttemptDir(r.Dir, r.Attempt.Number), agency.EventsFile)
	from := max(0, stampOf(path).size-explainBytes)
	evidence, _, err := op.spool.Tail(path, from)
	if err != nil {
		op.log.Warn("read evidence", "run", r.ID, "err", err)
	}
	if from > 0 && len(evidence) > 0 {
		evidence = evidence[1:] // a part of a line
	}
	return evidence[max(0, len(evidence)-explainLines):]
}
