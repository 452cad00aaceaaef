package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/file"
)

// Limits of what becomes a run's output, in bytes.
const (
	outputLimit = 1 << 20
	// answerLimit is how much of the end of the evidence is looked through for the last answer.
	answerLimit = 4 << 20
)

func outputPath(r *agency.Run) string { return filepath.Join(r.Dir, "output.md") }

// writeOutput keeps what a run came to as output.md in its directory: the report that the agent filled in, or else its last
// answer. It is called before the record says that an agent offers its work or has ended, so that who waits for that finds it.
// An answer counts only when it is final: the agent that offers its work is about to give another. What cannot be read
// leaves the file as it is.
func (s *Supervisor) writeOutput(ctx context.Context, id agency.RunID, final bool) {
	r, err := s.Records.Run(ctx, id)
	if err != nil {
		s.Log.Warn("read the run of an output", "run", id, "err", err)
		return
	}
	output := s.output(r, final)
	if len(output) == 0 {
		return
	}
	if err := file.WriteAtomic(outputPath(r), output); err != nil {
		s.Log.Warn("write output.md", "run", id, "err", err)
	}
}

// output is what the newest attempt came to. A report that was filled in before the attempt began is the word of an older
// one: an answer of this one is better.
func (s *Supervisor) output(r *agency.Run, final bool) []byte {
	report, err := file.ReadBeneath(r.Worktree, agency.ReportFile, outputLimit)
	if err != nil || s.ReportUnfilled(report) {
		report = nil
	}
	if report != nil && (r.Attempt.Number == 1 || !changeTime(filepath.Join(r.Worktree, agency.ReportFile)).Before(begun(r))) {
		return report
	}
	if !final {
		return nil
	}
	if answer := s.lastAnswer(r); answer != "" {
		return append([]byte(answer), '\n')
	}
	return report
}

// begun is when the newest attempt began, by the kernel's clock where that is behind the daemon's, which never runs backwards:
// the link to the logs is made anew for each attempt.
func begun(r *agency.Run) time.Time {
	at := r.Attempt.CreatedAt
	if linked := changeTime(filepath.Join(r.Dir, "logs")); !linked.IsZero() && linked.Before(at) {
		return linked
	}
	return at
}

// lastAnswer is the last message of the agent in its newest attempt, as its hook or stream told it.
func (s *Supervisor) lastAnswer(r *agency.Run) string {
	path := filepath.Join(attemptDir(r.Dir, r.Attempt.Number), agency.EventsFile)
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	answer := ""
	for offset := max(0, info.Size()-answerLimit); offset < info.Size(); {
		evidence, next, err := s.Spool.Tail(path, offset)
		if err != nil || next <= offset {
			break
		}
		for i := range evidence {
			if e := &evidence[i]; e.Sign == agency.SignTurnEnded && e.Subagent == "" && e.Text != "" {
				answer = e.Text
			}
		}
		offset = next
	}
	return answer
}

// offered keeps the report of an agent that offers its work by a new word, or by the same once more.
func (s *Supervisor) offered(ctx context.Context, l *liveRun, word agency.Observed, stamp fileStamp) {
	if word.Contract == nil || word.Contract.Status != agency.SaysReadyForReview {
		return
	}
	r, err := s.Records.Run(ctx, l.id)
	if err == nil && (!sameWord(r.Attempt.Word, word) || wroteAgain(l, r.Attempt.Word.At, stamp, word.At)) {
		s.writeOutput(ctx, l.id, false)
	}
}

// answered keeps the answer of a turn that ended, if the agent offers it as its work.
func (s *Supervisor) answered(ctx context.Context, id agency.RunID, situation *agency.Situation) {
	r, err := s.Records.Run(ctx, id)
	if err != nil {
		return
	}
	c, said := r.Attempt.Word.Contract, situation.Reported
	if c != nil && c.Status == agency.SaysReadyForReview || said != nil && said.Report == agency.ReportsComplete {
		s.writeOutput(ctx, id, true)
	}
}
