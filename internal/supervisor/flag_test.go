package supervisor_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// Setting, replacing and removing a flag each create one event; what changes nothing creates none.
func TestFlag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := string(w.ended("fix-login").ID)
	flag := func(reason, by, want string, code agency.Code) {
		t.Helper()
		r, was, err := w.sup.Marks.Flag(t.Context(), "fix-login", reason, by)
		switch {
		case code != "" || err != nil:
			if !agency.IsCode(err, code) {
				t.Fatalf("%s: %v, want %q", reason, err, code)
			}
		case r.Flag.Reason != reason || (was == nil) != (want == "") || was != nil && was.Reason != want:
			t.Errorf("%s: flag %+v, before %+v", reason, r.Flag, was)
		}
	}
	flag("unsure", id, "", "")
	flag("more unsure", id, "unsure", "")
	flag("no licence", agency.User, "more unsure", "")
	flag("no licence", "r_1", "no licence", "")
	flag("all is fine", id, "", agency.CodePermissionDenied)
	flag(" ", agency.User, "", agency.CodeUsage)

	r, err := w.store.Run(t.Context(), agency.RunID(id))
	if err != nil || r.Flag == nil || r.Flag.Reason != "no licence" || r.Flag.By != agency.User {
		t.Fatalf("got %+v, %v", r, err)
	}
	var meta agency.Run
	if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(r.Dir, "meta.json"))), &meta); err != nil || meta.Flag == nil || meta.Flag.Reason != "no licence" {
		t.Errorf("meta.json has %+v, %v", meta.Flag, err)
	}
	for _, want := range []string{"no licence", ""} {
		r, was, err := w.sup.Marks.Unflag(t.Context(), "fix-login", agency.User)
		if err != nil || r.Flag != nil || (was == nil) != (want == "") || was != nil && was.Reason != want {
			t.Errorf("flag %+v, before %+v, %v", r.Flag, was, err)
		}
	}
	if w.count(r.ID, agency.RunFlagged) != 3 || w.count(r.ID, agency.RunUnflagged) != 1 {
		t.Errorf("events: %v", w.events(r.ID))
	}
}

// A run that flags another one does not get the alert: the next level does.
func TestFlagNotifiesOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss, worker := w.create("boss"), w.create("worker")
	for by, want := range map[string]string{string(worker.ID): string(boss.ID), agency.User: string(boss.ID), string(boss.ID): agency.User} {
		flagged, err := w.store.ChangeRun(t.Context(), worker.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Owner, r.Flag = string(boss.ID), &agency.Flag{Reason: "look", By: by, At: time.Now()}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		a := &agency.Alert{ID: "a_" + by, Kind: agency.AlertNeedsInput, RunID: worker.ID, Cause: flagged.Flag.Cause(), Payload: []byte("{}")}
		if notified, err := w.sup.Inbox.SendAlert(t.Context(), a, flagged, "orchestrator"); err != nil || !slices.Equal(notified, []string{want}) {
			t.Errorf("flagged by %s: notified %q, want %s, %v", by, notified, want, err)
		}
	}
}

// A reason has visible characters, and a limited length.
func TestCheckFlagReason(t *testing.T) {
	t.Parallel()
	for reason, fine := range map[string]bool{
		"look": true, " ": false, "\u200b\x1b": false, strings.Repeat("ü", agency.FlagReasonLimit): true, strings.Repeat("ü", agency.FlagReasonLimit+1): false,
	} {
		if err := supervisor.CheckFlagReason(reason); (err == nil) != fine || err != nil && !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%.20q: %v", reason, err)
		}
	}
}
