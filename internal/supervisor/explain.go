package supervisor

import (
	"context"
	"path/filepath"

	"agency"
	"agency/internal/status"
)

// explainLines is how much of an attempt's evidence file an explanation quotes, in lines and in bytes.
const (
	explainLines = 20
	explainBytes = 64 << 10
)

// Explain tells why a run has its status, with the newest lines of its evidence.
func (s *Supervisor) Explain(ctx context.Context, ref string) (*agency.Run, agency.Explanation, []agency.Evidence, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Explanation{}, nil, err
	}
	attempts, err := s.Records.Attempts(ctx, r.ID)
	if err != nil {
		return nil, agency.Explanation{}, nil, err
	}
	s.checkRecord(r)
	f := s.facts(r)
	for i := range attempts {
		if attempts[i].Number < r.Attempt.Number {
			f.Earlier = append(f.Earlier, attempts[i])
		}
	}
	return r, status.Explain(f, s.moment(f)), s.newestEvidence(r), nil
}

// newestEvidence are the last lines of the evidence file of a run's newest attempt. It may be gone, or be anything: then
// there are none.
func (s *Supervisor) newestEvidence(r *agency.Run) []agency.Evidence {
	path := filepath.Join(attemptDir(r.Dir, r.Attempt.Number), agency.EventsFile)
	from := max(0, stampOf(path).size-explainBytes)
	evidence, _, err := s.Spool.Tail(path, from)
	if err != nil {
		s.Log.Warn("read evidence", "run", r.ID, "err", err)
	}
	if from > 0 && len(evidence) > 0 {
		evidence = evidence[1:] // a part of a line
	}
	return evidence[max(0, len(evidence)-explainLines):]
}
