package mcp_test

import (
	"strings"
	"testing"
	"time"
)

// queueAnswer is a queue as the tools report it.
type queueAnswer struct {
	Entries []struct{ Run, State, Why string }
}

// An agent queues the work of what it started, and nothing else. It lands once the user approves it.
func TestQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	person := connect(t, f, f.Repo, nil, "--tools", "all")
	var boss struct{ Run worker }
	person.must(&boss, "run_create", object{"name": "boss", "prompt": "ask Go on?\nwait-file .agency/end"})
	person.must(nil, "run_create", object{"name": "other", "prompt": "write b.txt 1\ncommit other"})
	person.must(nil, "run_wait", object{"runs": []string{"boss"}})
	person.must(nil, "run_wait", object{"runs": []string{"other"}})

	agent := connect(t, f, f.Repo, environOf(t, boss.Run.ID), "--tools", "all")
	agent.must(nil, "run_create", object{"name": "work", "prompt": "write a.txt 1\ncommit work"})
	agent.must(nil, "run_wait", object{"runs": []string{"work"}})
	agent.refused("E_PERMISSION_DENIED", "queue_add", object{"runs": []string{"other"}})
	agent.must(nil, "queue_add", object{"runs": []string{"work"}})
	got := agent.queued("work", "held")
	if !strings.Contains(got.Entries[0].Why, "an agent added it, and the user must approve it") {
		t.Errorf("got %+v", got)
	}
	if r := f.Agency("queue", "add", "work", "--approve"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	agent.queued("work", "landed")
}

// queued waits until the newest entry of a run has a state, and returns its entries.
func (c *client) queued(run, state string) queueAnswer {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var got queueAnswer
		c.must(&got, "queue_show", object{"run": run})
		if n := len(got.Entries); n > 0 && got.Entries[n-1].State == state {
			return got
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s is not %s: %+v", run, state, got)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
