package supervisor_test

import (
	"encoding/json"
	"testing"

	"agency"
	"agency/internal/supervisor"
)

// A message to a run that is being removed becomes a dead letter, and the sender is notified.
func TestMessageToARunThatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.store.OnSendMessage = func() {
		if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"}); err != nil {
			t.Error(err)
		}
	}
	m := &agency.Message{Type: "message", From: agency.User, To: agency.Target{Run: "fix-login"}, Payload: json.RawMessage("{}")}
	recipients, dead, err := w.sup.Inbox.Send(t.Context(), m)
	if err != nil || len(recipients) > 0 || dead != "fix-login was removed" {
		t.Errorf("sent to %q, dead %q, %v", recipients, dead, err)
	}
	messages, err := w.store.Messages(t.Context(), agency.MessageFilter{Recipient: string(r.ID)})
	if err != nil || len(messages) != 1 || messages[0].Dead != dead {
		t.Errorf("got %+v, %v", messages, err)
	}
}
