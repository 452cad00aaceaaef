package observe_test

import (
	"testing"
	"time"

	"agency"
	"agency/internal/spool"
	"agency/internal/supervisor/observe"
)

// Whatever the file contains and wherever reading stopped, the result is reports, made when they
// were read.
func FuzzReports(f *testing.F) {
	help := `{"at":"2001-01-01T00:00:00Z","source":"report","signal":"report","report":"help","text":"Look","quiet":4611686018427387904}` + "\n"
	f.Add([]byte(help+help), int64(len(help)))
	f.Add([]byte(help+help), int64(3))
	f.Add([]byte(help[:20]), int64(-1))
	f.Add([]byte("{}\n\n[]\n\"\xff\"\n"), int64(1<<40))
	f.Fuzz(func(t *testing.T, data []byte, offset int64) {
		at := time.Unix(1_700_000_000, 0)
		reports := observe.NewReports(spools{}, data, offset, at)
		for i, e := range reports {
			last := i == len(reports)-1
			if e.Source != agency.FromReport || e.Signal != agency.SignalReport && e.Signal != agency.SignalUnknown || !e.At.Equal(at) ||
				e.Quiet < 0 || e.Quiet > agency.MaxQuiet || len(e.Text) > agency.EvidenceText || last != (e.Offset > 0) || e.Offset > int64(len(data)) {
				t.Errorf("got %+v", e)
			}
		}
	})
}

// spools reads evidence like a real spool.
type spools struct{ observe.Spool }

func (spools) Parse(lines []byte) []agency.Evidence { return spool.Parse(lines) }
