package mcp_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// sessionAnswer is a session as the tools report it.
type sessionAnswer struct {
	Session struct {
		ID, Name, Status string
		Paused           string
		Summary          map[string]int
	}
	Agents []struct {
		ID, Status, Run, Note, Error string
		Label                        string `json:"run_status"`
		Result                       struct {
			Added int
			Tests string
		}
	}
	TimedOut bool `json:"timed_out"`
}

// An orchestrator runs a plan: it checks it, starts it, gets the question of one agent as a
// message, answers it, and takes the results.
func TestSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	plan := object{"name": "twice", "yaml": `agents:
  - {id: one, prompt: "ask Which colour?\nwrite one.txt blue\nready Painted | cat one.txt"}
  - {id: two, prompt: "say done", after: [one], base: deps}
`}
	var planned struct{ Waves [][]string }
	c.must(&planned, "session_plan", plan)
	if len(planned.Waves) != 2 || !slices.Equal(planned.Waves[1], []string{"two"}) {
		t.Errorf("planned %+v", planned)
	}
	c.refused("E_PLAN_INVALID", "session_plan", object{"yaml": "agents: [{id: a, prompt: x, after: [b]}]"})
	c.refused("E_SESSION_NOT_FOUND", "session_show", object{"session": "latest"})

	var started, s sessionAnswer
	c.must(&started, "session_start", plan)
	c.must(&s, "session_wait", object{"session": "active", "timeout_seconds": 60})
	if s.TimedOut || s.Session.ID != started.Session.ID || len(s.Agents) != 1 || s.Agents[0].Label != "needs input" || s.Agents[0].Note != "Which colour?" {
		t.Fatalf("waited: %+v", s)
	}
	c.awaitProgress(1)
	c.must(&s, "session_wait", object{"session": "twice", "settled_only": true, "timeout_seconds": 1})
	if !s.TimedOut {
		t.Errorf("got %+v", s)
	}
	c.must(&s, "session_pause", object{"session": "twice"})
	if s.Session.Paused == "" {
		t.Errorf("paused: %+v", s)
	}
	c.must(&s, "session_resume", object{"session": "twice"})
	c.must(&s, "session_show", object{"session": "twice", "status": []string{"running"}})
	c.refused("E_USAGE", "session_show", object{"session": "twice", "status": []string{"done"}})
	var worker worker
	c.must(&worker, "run_status", object{"run": s.Agents[0].Run})
	c.must(nil, "run_answer", object{"run": s.Agents[0].Run, "text": "blue", "prompt_id": worker.PromptID})
	c.must(&s, "session_wait", object{"session": "twice", "settled_only": true, "timeout_seconds": 60})
	if s.TimedOut || s.Session.Status != "complete" || len(s.Agents) != 0 {
		t.Errorf("settled: %+v", s)
	}

	// The end is reported once all results are known; the ends of the agents are not.
	got := map[string]int{}
	for got["session.complete"] == 0 {
		c.takeInbox(got)
	}
	if got["session.complete"] != 1 || got["worker.complete"] != 0 {
		t.Errorf("got %v", got)
	}
	c.must(&s, "session_show", object{"session": started.Session.ID})
	if len(s.Agents) != 2 || s.Agents[0].Result.Added != 1 || s.Agents[0].Result.Tests != "cat one.txt" {
		t.Errorf("results: %+v", s)
	}
	c.refused("E_INVALID_STATE", "session_cancel", object{"session": "twice"})
	c.refused("E_INVALID_STATE", "session_retry", object{"session": "twice"})
}

// A failed agent is run again; a cancelled session ends its agents.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	var started, s sessionAnswer
	c.must(&started, "session_start", object{"yaml": "agents: [{id: a, prompt: exit 1}]"})
	c.must(&s, "session_wait", object{"session": started.Session.ID, "timeout_seconds": 60})
	if s.Session.Status != "failed" || len(s.Agents) != 1 || s.Agents[0].Error == "" {
		t.Errorf("failed: %+v", s)
	}
	var again sessionAnswer
	c.must(&again, "session_retry", object{"session": started.Session.ID, "failed_only": true})
	if again.Session.ID == started.Session.ID {
		t.Error("the same session again")
	}
	c.must(&started, "session_start", object{"yaml": "agents: [{id: a, prompt: ask Which?}]"})
	c.must(nil, "session_cancel", object{"session": started.Session.ID})
	c.must(&s, "session_wait", object{"session": started.Session.ID, "settled_only": true, "timeout_seconds": 60})
	if s.Session.Status != "cancelled" {
		t.Errorf("cancelled: %+v", s)
	}
	var list struct{ Sessions []struct{ ID string } }
	c.must(&list, "session_list", nil)
	if len(list.Sessions) != 3 {
		t.Errorf("listed %+v", list)
	}
}

// takeInbox waits for messages, acknowledges them and counts them by type.
func (c *client) takeInbox(count map[string]int) {
	c.t.Helper()
	var inbox struct{ Messages []letter }
	c.must(&inbox, "messages_poll", object{"wait_seconds": 50})
	if len(inbox.Messages) == 0 {
		c.t.Fatalf("got %v", count)
	}
	for _, m := range inbox.Messages {
		count[m.Type]++
		c.must(nil, "messages_ack", object{"message_ids": []string{m.ID}})
	}
}

// Reports on the caller's own agents go into a session of agency session create; sessions of other
// repositories do not show.
func TestExternalSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created := f.Agency("session", "create", "--json", "--agent", "001", "--agent", "002")
	var resp struct{ Data sessionAnswer }
	if err := json.Unmarshal([]byte(created.Stdout), &resp); err != nil || resp.Data.Session.ID == "" {
		t.Fatalf("%v in %+v", err, created)
	}
	id := resp.Data.Session.ID
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	c.must(nil, "session_update", object{"session": id, "updates": []object{{"agent": "001", "action": "start", "pid": 77}, {"agent": "001", "action": "complete"}}})
	c.refused("E_INVALID_STATE", "session_update", object{"session": id, "updates": []object{{"agent": "001", "action": "start"}}})
	c.must(nil, "session_update", object{"session": id, "updates": []object{{"agent": "002", "action": "start"}, {"agent": "002", "action": "fail", "error": "boom"}}})
	var s sessionAnswer
	c.must(&s, "session_show", object{"session": id})
	if s.Session.Status != "failed" || s.Agents[1].Error != "boom" {
		t.Errorf("got %+v", s)
	}

	other := filepath.Join(f.Root, "other")
	for _, args := range [][]string{{"init", "-q", other}, {"-C", other, "commit", "-q", "--allow-empty", "-m", "first"}} {
		if r := f.Command("", "git", args...); r.Exit != 0 {
			t.Fatalf("git %q: %s", args, r.Stderr)
		}
	}
	stranger := connect(t, f, other, nil)
	stranger.refused("E_SESSION_NOT_FOUND", "session_show", object{"session": id})
	stranger.refused("E_SESSION_NOT_FOUND", "session_cancel", object{"session": id})
	stranger.refused("E_SESSION_NOT_FOUND", "session_show", object{"session": "latest"})
	connect(t, f, other, nil, "--all-repos").must(nil, "session_show", object{"session": id})
}
