package supervisor_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"agency"
	"agency/internal/supervisor"
)

// A setting is what the agent says after the change, and the record tells who changed it.
func TestSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, said := speaking(t, w)
		p.link.SayFunc = func(s agency.Saying) (agency.Delivery, error) {
			*said = append(*said, s)
			w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalSession, Model: s.Text + "-9", Models: "small\nlarge"})
			return agency.Delivery{Confirmed: true, Effect: agency.EffectTaken}, nil
		}
		_, now, _, err := w.sup.Input.Set(supervisor.By(t.Context(), "lead"), r.Handle, agency.SettingModel, "small")
		if err != nil || now != "small-9" || len(*said) != 1 || (*said)[0].By != "lead" || (*said)[0].Setting != agency.SettingModel {
			t.Errorf("got %s, %v, said %+v", now, err, *said)
		}
		if s, _ := w.sup.Query.Settings(w.run(r.ID)); s.Model != "small-9" || len(s.Models) != 2 || s.PermissionModes == nil {
			t.Errorf("got %+v", s)
		}
		for setting, value := range map[agency.Setting]string{"mood": "good", agency.SettingModel: "a\nb", agency.SettingPermissionMode: ""} {
			if _, _, _, err := w.sup.Input.Set(t.Context(), r.Handle, setting, value); codeOf(err) != agency.CodeUsage || len(*said) != 1 {
				t.Errorf("%s %q: %v", setting, value, err)
			}
		}
	})
}

// Of several messages, one is named by the beginning of its id.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, said := speaking(t, w)
		w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalQueue, Queue: "a1 user go on\nb2 lead and stop\n"})
		for id, want := range map[string]string{"": "2 messages with which it has not begun: a1 (go on); b2 (and stop)", "c": "has no message c"} {
			if _, _, _, err := w.sup.Input.TakeBack(t.Context(), r.Handle, id); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", id, err)
			}
		}
		_, m, _, err := w.sup.Input.TakeBack(t.Context(), r.Handle, "b")
		if err != nil || m.ID != "b2" || m.By != "lead" || len(*said) != 1 || (*said)[0].Text != "b2" {
			t.Errorf("got %+v, %v, said %+v", m, err, *said)
		}
	})
}
