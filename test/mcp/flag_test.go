package mcp_test

import (
	"strings"
	"testing"
)

// An agent asks the user to look at something: at itself, and at its worker.
func TestFlag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	person := connect(t, f, f.Repo, nil, "--tools", "all")
	var created struct{ Run worker }
	person.must(&created, "run_create", object{"name": "boss", "prompt": "ask Go on?\nwait-file .agency/end"})
	person.must(nil, "run_wait", object{"runs": []string{"boss"}})
	boss := connect(t, f, f.Repo, environOf(t, created.Run.ID), "--tools", "all")
	boss.must(nil, "run_create", object{"name": "hand", "prompt": "work Painting\nwait-file .agency/end"})

	type flagged struct {
		Run struct {
			Status, Summary string
			Flag            *struct{ Reason, By string }
		}
		Was *struct{ Reason string }
	}
	var got flagged
	boss.must(&got, "run_flag", object{"run": "hand", "reason": "it paints \x1b[31mred\u202e"})
	if r := got.Run; r.Status != "needs attention" || r.Flag == nil || r.Flag.By != created.Run.ID || strings.ContainsAny(r.Flag.Reason+r.Summary, "\x1b\u202e") {
		t.Errorf("got %+v", got)
	}
	// The run that set the flag knows of it, so the message goes to the user.
	for notified := false; !notified; {
		var inbox struct {
			Messages []struct {
				ID      string
				Payload struct {
					Name string `json:"worker_name"`
					Type string `json:"prompt_type"`
				}
			}
		}
		person.must(&inbox, "messages_poll", object{"wait_seconds": 50})
		if len(inbox.Messages) == 0 {
			t.Fatal("the user was not notified")
		}
		for _, m := range inbox.Messages {
			notified = notified || m.Payload.Name == "hand" && m.Payload.Type == "attention"
			person.must(nil, "messages_ack", object{"message_ids": []string{m.ID}})
		}
	}

	boss.must(nil, "run_flag", object{"run": "boss", "reason": "am I right?"})
	boss.refused("E_PERMISSION_DENIED", "run_unflag", object{"run": "boss"})
	boss.refused("E_USAGE", "run_flag", object{"run": "boss", "reason": "\u200b"})
	person.must(nil, "run_flag", object{"run": "boss", "reason": "look at its diff"})
	boss.refused("E_PERMISSION_DENIED", "run_flag", object{"run": "boss", "reason": "all is well"})

	got = flagged{}
	boss.must(&got, "run_unflag", object{"run": "hand"})
	if got.Run.Status == "needs attention" || got.Run.Flag != nil || got.Was == nil {
		t.Errorf("got %+v", got)
	}
	got = flagged{}
	boss.must(&got, "run_unflag", object{"run": "hand"})
	if got.Was != nil {
		t.Errorf("got %+v", got)
	}
}
