package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agency"
)

// Inbox delivers messages to agents and users.
type Inbox struct {
	store  *Records
	git    Git
	now    func() time.Time
	random Random
}

// Send writes a message and returns its recipients. A message without a recipient is kept as a dead
// letter, with the reason.
func (in *Inbox) Send(ctx context.Context, m *agency.Message) (recipients []string, dead string, err error) {
	if err := m.Validate(); err != nil {
		return nil, "", err
	}
	if recipients, dead, err = in.recipients(ctx, m.From, &m.To); err != nil {
		return nil, "", err
	}
	if m.ID == "" {
		m.ID = agency.NewMessageID(in.now(), [10]byte(in.random.bytes(10)))
	}
	err = in.store.SendMessage(ctx, m, recipients, dead)
	for _, id := range recipients {
		if r, unknown := in.store.Run(ctx, agency.RunID(id)); err != nil && unknown == nil {
			err = byName(err, r)
		}
	}
	if m.Dead != "" { // the recipient was removed meanwhile
		recipients, dead = nil, m.Dead
	}
	return recipients, dead, err
}

// recipients resolves a target. The sender never gets its own message. A reference to a run becomes
// its id.
func (in *Inbox) recipients(ctx context.Context, from string, to *agency.Target) (ids []string, dead string, err error) {
	switch {
	case to.User:
		return []string{agency.User}, "", nil
	case to.Run != "":
		r, err := in.store.Resolve(ctx, to.Run)
		if err != nil {
			return nil, "", err
		}
		to.Run = string(r.ID)
		if r.RemovedAt != nil {
			return nil, r.Ref() + " was removed", nil
		}
		return []string{string(r.ID)}, "", nil
	case to.Owner:
		return in.ownerOf(ctx, from)
	}
	filter, none := agency.Filter{Live: true}, "no live run"
	if to.Repo != "" {
		repo, err := in.git.Discover(ctx, to.Repo)
		if err != nil {
			return nil, "", err
		}
		filter.Repo, none = repo.Fingerprint, "no live run in "+repo.Root
	}
	if to.Tag != "" {
		filter.Tag, none = to.Tag, fmt.Sprintf("no live run with the tag %s", to.Tag)
		if sender, err := in.store.Run(ctx, agency.RunID(from)); err == nil {
			filter.Repo = sender.Repo.Fingerprint // other projects use the same role names
		}
	}
	runs, err := in.store.Runs(ctx, filter)
	if err != nil {
		return nil, "", err
	}
	for i := range runs {
		if id := string(runs[i].ID); id != from && runs[i].RemovedAt == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, none, nil
	}
	return ids, "", nil
}

// ownerOf returns the owner of a run: a live run, or else the user.
func (in *Inbox) ownerOf(ctx context.Context, id string) (ids []string, dead string, err error) {
	r, err := in.store.Run(ctx, agency.RunID(id))
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return nil, "only a run has an owner", nil
	}
	if err != nil {
		return nil, "", err
	}
	ids, err = in.awake(ctx, r.Owner)
	return ids, "", err
}

// awake returns an owner that can act: a live run, or else the user.
func (in *Inbox) awake(ctx context.Context, owner string) (ids []string, err error) {
	if owner == agency.User {
		return []string{agency.User}, nil
	}
	r, err := in.store.Run(ctx, agency.RunID(owner))
	if err == nil && r.RemovedAt == nil && !r.Attempt.State.Final() {
		return []string{owner}, nil
	}
	if err != nil && !agency.IsCode(err, agency.CodeRunNotFound) {
		return nil, err
	}
	return []string{agency.User}, nil
}

// SendToOwner sends a message of agency to an owner, or to the user when the owner is a run that is
// over, and returns the recipients. A message with a known id is not written again.
func (in *Inbox) SendToOwner(ctx context.Context, owner string, m *agency.Message) ([]string, error) {
	recipients, err := in.awake(ctx, owner)
	if err != nil {
		return nil, err
	}
	m.To = agency.Target{Run: owner}
	if slices.Contains(recipients, agency.User) {
		m.To = agency.Target{User: true}
	}
	return recipients, in.store.SendMessage(ctx, m, recipients, "")
}

// Poll returns the messages that a filter chooses among those that wait for its recipient, oldest
// first. Each is returned again until it is acknowledged. With wait it blocks until the first
// message; it returns none when ctx ends.
func (in *Inbox) Poll(ctx context.Context, f agency.MessageFilter, wait bool) ([]agency.Message, error) {
	f.Waiting = true
	for {
		changed := in.store.Changed()
		messages, err := in.store.Messages(context.WithoutCancel(ctx), f)
		if err != nil {
			return nil, err
		}
		if len(messages) > 0 {
			seqs := make([]int64, 0, len(messages))
			for i := range messages {
				if messages[i].DeliveredAt == nil {
					seqs = append(seqs, messages[i].Seq)
				}
			}
			if len(seqs) > 0 {
				err = in.store.DeliverMessages(context.WithoutCancel(ctx), f.Recipient, seqs)
			}
			return messages, err
		}
		if !wait {
			return messages, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return messages, nil
		}
	}
}

// SendAlert sends an alert to the recipients for its level: the owner, then the orchestrators of
// the same repository, then the user. Where the user is the owner, or stands in for one that ended,
// the orchestrators are notified at once as well. A level without recipients passes it to the next
// one; a run that set a flag does not get the alert about it. The id of the message consists of the
// alert's id and the number of earlier notifications, so repeating one after a crash is harmless.
func (in *Inbox) SendAlert(ctx context.Context, a *agency.Alert, r *agency.Run, orchestratorTag string) ([]string, error) {
	return in.sendAlert(ctx, a, orchestratorTag, func(to *agency.Target) ([]string, error) {
		recipients, _, err := in.recipients(ctx, string(r.ID), to)
		if r.Flag != nil && a.Cause == r.Flag.Cause() && r.Flag.By != agency.User {
			recipients = slices.DeleteFunc(recipients, func(id string) bool { return id == r.Flag.By })
		}
		return recipients, err
	})
}

// SendSessionAlert is SendAlert for an alert of a session.
func (in *Inbox) SendSessionAlert(ctx context.Context, a *agency.Alert, session *agency.Session, orchestratorTag string) ([]string, error) {
	return in.sendAlert(ctx, a, orchestratorTag, func(to *agency.Target) ([]string, error) {
		switch {
		case to.Owner:
			*to = agency.Target{Run: session.Owner}
			recipients, err := in.awake(ctx, session.Owner)
			if slices.Contains(recipients, agency.User) {
				*to = agency.Target{User: true}
			}
			return recipients, err
		case to.User:
			return []string{agency.User}, nil
		}
		runs, err := in.store.Runs(ctx, agency.Filter{Live: true, Tag: to.Tag, Repo: session.Repo.Fingerprint})
		recipients := make([]string, 0, len(runs))
		for i := range runs {
			if runs[i].RemovedAt == nil {
				recipients = append(recipients, string(runs[i].ID))
			}
		}
		return recipients, err
	})
}

// SendHostAlert is SendAlert for an alert of the machine, which goes to the user only.
func (in *Inbox) SendHostAlert(ctx context.Context, a *agency.Alert) ([]string, error) {
	return in.sendAlert(ctx, a, "", func(to *agency.Target) ([]string, error) {
		if to.User {
			return []string{agency.User}, nil
		}
		return nil, nil
	})
}

// sendAlert sends an alert to the first level, from its own upwards, that has recipients. reach
// resolves a target, and may refine it.
func (in *Inbox) sendAlert(ctx context.Context, a *agency.Alert, orchestratorTag string, reach func(to *agency.Target) ([]string, error)) ([]string, error) {
	targets := []agency.Target{{Owner: true}, {Tag: orchestratorTag}, {User: true}}
	for _, to := range targets[min(a.Level, len(targets)-1):] {
		owner := to.Owner
		recipients, err := reach(&to)
		if err == nil && owner && slices.Contains(recipients, agency.User) {
			var leaders []string
			leaders, err = reach(&agency.Target{Tag: orchestratorTag})
			recipients = append(recipients, leaders...)
		}
		if err != nil {
			return nil, err
		}
		if len(recipients) == 0 {
			continue
		}
		payload := map[string]any{}
		if err := json.Unmarshal(a.Payload, &payload); err != nil {
			return nil, fmt.Errorf("read the payload of %s: %w", a.ID, err)
		}
		payload["alert_id"], payload["notify_count"] = a.ID, a.NotifyCount+1
		data, err := json.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("encode alert %s: %w", a.ID, err)
		}
		m := &agency.Message{ID: fmt.Sprintf("%s-%d", a.ID, a.NotifyCount+1), Type: string(a.Kind), From: agency.Daemon, To: to, Payload: data}
		return recipients, in.store.SendMessage(ctx, m, recipients, "")
	}
	return nil, nil
}

// Report sends a worker's report to its owner, once: the id of the message comes from the report.
func (in *Inbox) Report(ctx context.Context, id agency.RunID, attempt int, e *agency.Evidence) error {
	if e.Signal != agency.SignalReport {
		return nil
	}
	recipients, dead, err := in.ownerOf(ctx, string(id))
	if err != nil {
		return err
	}
	kind := map[agency.Report]string{
		agency.ReportsStatus: agency.StatusUpdate, agency.ReportsHelp: "help.request", agency.ReportsComplete: "task.complete", agency.ReportsError: "task.failed",
	}[e.Report]
	if kind == "" {
		return nil
	}
	payload, err := json.Marshal(map[string]any{"run_id": id, "attempt": attempt, "report": e.Report, "text": e.Text, "at": e.At.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s %s", id, attempt, e.ID, e.Report, e.Text))
	m := &agency.Message{ID: "m_" + hex.EncodeToString(sum[:10]), Type: kind, From: string(id), To: agency.Target{Owner: true}, Payload: payload}
	return in.store.SendMessage(ctx, m, recipients, dead)
}
