package menu_test

import (
	"testing"

	"agency"
)

// A session is shown with its agents, those that wait first, and with what each waits for.
func TestMenuSessions(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("s 1 3 4 n 4 y 1 2 b b b q")
	u.hears("1. release, running: 1 queued, 1 done", "1. api, queued: waits for schema\n2. schema, complete\n3. pause it: no more agents start\n4. cancel it\n", "release is paused",
		"cancel release? its agents are stopped y/n\nnothing was done", "release is being cancelled", "api has not begun", "auth-fix, needs input", "number of a session", "number of a run")
	u.did("pause s1", "cancel s1")
	u.sessions[0].Paused = agency.PausedByHand
	u.types("s 1 3 b b")
	u.hears("1. release, running: 1 queued, 1 done; paused: paused by hand", "3. let it continue\n4. cancel it", "release continues")
	u.did("resume s1")
	u.sessions[0].Status = agency.SessionFailed
	u.types("s 1 3 y b b")
	u.hears("3. try again what is not complete, in a new session", "try what is not complete of release again? y/n\nretrying release\nrelease continues in a new session")
	u.did("retry s1")
	u.sessions[0].External = true
	u.types("s 1")
	u.misses("3. ")
}

// The landing queues tell why an entry is where it is. The entry is that of the run, whatever is
// called like it.
func TestMenuQueues(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("l 1 2 1 3 y 1 4 1 1 b b q")
	u.hears("1. search to main, held: it is held\n", "search to main, held: it is held\nthe queue of main is paused\nmain is dirty\n1. its run\n2. let it continue\n3. take it out of the queue\n4. let the whole queue of main continue\n",
		"search continues", "take search out of the queue of main? y/n\nsearch is out of the queue", "the queue of main continues", "search, working", "number of an entry", "number of a run")
	u.did("queue resume [r_2]", "queue remove [r_2]", "queue of main in /home/me/web resumed true")
	u.entries[0].State = agency.EntryConflict
	u.types("l 1 2 1 3")
	u.hears("2. try it again\n3. hold it\n4. take it out", "search is tried again", "search is held")
	u.did("queue retry [r_2]", "queue hold [r_2]")
	u.entries[0].State = agency.EntryLanding
	u.types("l 1")
	u.hears("2. hold it\n3. take it out")
	u.misses("try it again")
}

// The inbox has the alerts and messages that wait for the user.
func TestMenuInbox(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("i 1 2 1 3 1 1 b 2 1 2 2 b b q")
	u.hears("1. auth-fix asks: may it?\n2. search wrote: which way?\n", "auth-fix asks: may it?\nits command: agency answer auth-fix\n1. its run\n2. acknowledge it\n3. snooze it for an hour\n", "acknowledged", "snoozed for an hour",
		"auth-fix, needs input\nit asks", "which way?\n1. acknowledge it\n2. the run that wrote it", "acknowledged", "search, working", "number of an alert", "number of a run")
	u.did("ack [a1]", "snooze [a1] 3600000", "ack [m1]")
}
