package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/sqlite"
)

func send(t *testing.T, s *sqlite.Store, id, from, replyTo string, recipients ...string) error {
	t.Helper()
	m := &agency.Message{ID: id, Type: "message", From: from, To: agency.Target{User: true}, Payload: json.RawMessage("{}"), ReplyTo: replyTo}
	return s.SendMessage(context.Background(), m, recipients, "no run is there")
}

// Only its recipient can acknowledge or answer a message, by its id or the end of the id.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	s, ctx := setup(t), context.Background()
	for _, id := range []string{"m_one_ABCDEF", "m_two_ABCDEF", "m_GHIJKLM"} {
		if err := send(t, s, id, "r_1", "", agency.User); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		recipient string
		ids       []string
		acked     int
		code      agency.Code
	}{
		{agency.User, []string{"nope"}, 0, agency.CodeMessageNotFound},
		{agency.User, []string{"IJKLM"}, 0, agency.CodeMessageNotFound}, // too short
		{agency.User, []string{"%JKLMN"}, 0, agency.CodeMessageNotFound},
		{agency.User, []string{"ABCDEF"}, 0, agency.CodeUsage},
		{"r_2", []string{"m_GHIJKLM"}, 0, agency.CodeMessageNotFound},
		{agency.User, []string{"m_GHIJKLM", "nope"}, 0, agency.CodeMessageNotFound},
		{agency.User, []string{"HIJKLM", "two_ABCDEF"}, 2, ""},
		{agency.User, []string{"m_GHIJKLM", "m_one_ABCDEF"}, 1, ""},
	} {
		acked, err := s.AckMessages(ctx, tt.recipient, tt.ids)
		if acked != tt.acked || (err != nil || tt.code != "") && !agency.IsCode(err, tt.code) {
			t.Errorf("%s acknowledges %q: %d, %v", tt.recipient, tt.ids, acked, err)
		}
	}
	if err := send(t, s, "m_answer", agency.User, "HIJKLM", "r_1"); err != nil {
		t.Fatal(err)
	}
	if err := send(t, s, "m_lie", "r_2", "m_GHIJKLM", agency.User); !agency.IsCode(err, agency.CodeMessageNotFound) {
		t.Errorf("an answer to what came to another: %v", err)
	}
	messages, err := s.Messages(ctx, agency.MessageFilter{Recipient: "r_1"})
	if err != nil || len(messages) != 1 || messages[0].ReplyTo != "m_GHIJKLM" {
		t.Errorf("%+v, %v", messages, err)
	}
}

// Acknowledging a message never scans all messages: an inbox may hold a hundred thousand.
func TestMessagesAreFoundByIndex(t *testing.T) {
	t.Parallel()
	s := setup(t)
	plan := func(query string, args ...any) {
		rows, err := s.Readers().Query(`EXPLAIN QUERY PLAN `+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil || !strings.HasPrefix(detail, "SEARCH") {
				t.Errorf("%s: %s, %v", query, detail, err)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	plan(sqlite.InboxByID, agency.User, "m_1")
	plan(sqlite.InboxWaiting, agency.User, "m_number_1", "m_number_1")
}

// The end of an id means a waiting message before an acknowledged one.
func TestMessageEndsOfWhatWaits(t *testing.T) {
	t.Parallel()
	s, ctx := setup(t), context.Background()
	for _, id := range []string{"m_one_ABCDEF", "m_two_ABCDEF"} {
		if err := send(t, s, id, "r_1", "", agency.User); err != nil {
			t.Fatal(err)
		}
		if acked, err := s.AckMessages(ctx, agency.User, []string{"ABCDEF"}); acked != 1 || err != nil {
			t.Errorf("%s: %d, %v", id, acked, err)
		}
	}
	if _, err := s.AckMessages(ctx, agency.User, []string{"ABCDEF"}); !agency.IsCode(err, agency.CodeUsage) {
		t.Errorf("the end of two that were dealt with: %v", err)
	}
}

// A message to a run that is removed meanwhile becomes a dead letter, and its sender is notified.
func TestMessageToTheRemoved(t *testing.T) {
	t.Parallel()
	s, ctx := setup(t), context.Background()
	gone, there := newRun(1), newRun(2)
	create(t, s, gone, there)
	remove(t, s, gone.ID)
	dead := gone.Handle + " was removed"
	for _, tt := range []struct {
		recipients []string
		dead       string
	}{
		{[]string{string(gone.ID)}, dead},
		{[]string{string(gone.ID), string(there.ID)}, ""},
		{nil, "no run is there"},
	} {
		m := &agency.Message{ID: fmt.Sprint("m_", len(tt.recipients)), Type: agency.StatusUpdate, From: "r_1", Payload: json.RawMessage("{}")}
		if err := s.SendMessage(ctx, m, tt.recipients, "no run is there"); err != nil || m.Dead != tt.dead {
			t.Errorf("to %q: dead %q, %v", tt.recipients, m.Dead, err)
		}
		messages, err := s.Messages(ctx, agency.MessageFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range messages {
			want := map[string]string{string(gone.ID): dead, string(there.ID): "", "": "no run is there"}[got.Recipient]
			if got.ID == m.ID && got.Dead != want {
				t.Errorf("%s for %q: dead %q, want %q", got.ID, got.Recipient, got.Dead, want)
			}
		}
	}
	for recipient, want := range map[string]int{string(gone.ID): 0, string(there.ID): 1} {
		if waiting, err := s.Messages(ctx, agency.MessageFilter{Recipient: recipient, Waiting: true}); err != nil || len(waiting) != want {
			t.Errorf("%d messages wait for %s, %v", len(waiting), recipient, err)
		}
	}
}

// A message that waits for a run becomes a dead letter when the run is removed.
func TestMessagesOfTheRemoved(t *testing.T) {
	t.Parallel()
	s, ctx := setup(t), context.Background()
	r := newRun(1)
	if err := s.CreateRun(ctx, r, agency.Creation{}); err != nil {
		t.Fatal(err)
	}
	if err := send(t, s, "m_1", agency.User, "", string(r.ID)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := s.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) { r.RemovedAt = &epoch; return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	messages, err := s.Messages(ctx, agency.MessageFilter{Recipient: string(r.ID)})
	if err != nil || len(messages) != 1 || messages[0].Dead != r.Handle+" was removed" {
		t.Errorf("%+v, %v", messages, err)
	}
}

// An acknowledged message or a dead letter is deleted a week after it was sent; a waiting message
// never is.
func TestOldMessages(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), epoch
	s, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "agency.db"), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sent := 0
	must := func(recipients ...string) string {
		sent++
		id := fmt.Sprintf("m_number_%03d", sent)
		if err := send(t, s, id, agency.Daemon, "", recipients...); err != nil {
			t.Fatal(err)
		}
		return id
	}
	done, half, waits := must("r_1"), must("r_1", "r_2"), must("r_1")
	must() // a dead letter
	if _, err := s.AckMessages(ctx, "r_1", []string{done, half}); err != nil {
		t.Fatal(err)
	}
	remain := func() []string {
		t.Helper()
		for range 100 {
			must("r_3")
		}
		found, err := s.Messages(ctx, agency.MessageFilter{})
		if err != nil {
			t.Fatal(err)
		}
		kept := []string{}
		for _, m := range found {
			if m.Recipient != "r_3" {
				kept = append(kept, m.ID+" for "+m.Recipient)
			}
		}
		return kept
	}
	now = now.Add(agency.MessageAge)
	if kept := remain(); len(kept) != 5 {
		t.Errorf("after a week: %q", kept)
	}
	now = now.Add(time.Second)
	if kept := remain(); !slices.Equal(kept, []string{half + " for r_2", waits + " for r_1"}) {
		t.Errorf("after more than a week: %q", kept)
	}
	if _, err := s.AckMessages(ctx, "r_1", []string{done}); !agency.IsCode(err, agency.CodeMessageNotFound) {
		t.Errorf("acknowledge what was forgotten: %v", err)
	}
}

// An agent in a sandbox cannot fill an inbox together with what it started, so others still reach it.
// Its reports do not count.
func TestMessagesOfATree(t *testing.T) {
	t.Parallel()
	s := setup(t)
	runs := []*agency.Run{newRun(1), newRun(2), newRun(3), newRun(4)}
	for i, r := range runs[:3] {
		r.Sandbox.Level = agency.SandboxProcess
		if i > 0 {
			r.Owner = string(runs[i-1].ID)
		}
	}
	create(t, s, runs...)
	sent := 0
	from := func(r *agency.Run) error {
		sent++
		return send(t, s, fmt.Sprint("m_", sent), string(r.ID), "", agency.User)
	}
	for i := range agency.TreeLimit {
		if err := from(runs[i%3]); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runs[:3] {
		if err := from(r); !agency.IsCode(err, agency.CodeLimit) {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
	if err := from(runs[3]); err != nil {
		t.Errorf("another run: %v", err)
	}
	report := &agency.Message{ID: "m_report", Type: agency.StatusUpdate, From: string(runs[2].ID), To: agency.Target{User: true}, Payload: json.RawMessage("{}")}
	if err := s.SendMessage(context.Background(), report, []string{agency.User}, ""); err != nil {
		t.Errorf("a report: %v", err)
	}
}
