package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/plain"
)

// Urgency returns a number that is smaller the more an agent needs a user. In a list without space for all
// agents, those with smaller numbers come first.
func Urgency(a *api.SessionAgent) int {
	switch {
	case a.NeedsUser:
		return 0
	case a.Status == agency.AgentFailed:
		return 1
	case a.Status == agency.AgentRunning:
		return 2
	case a.Status == agency.AgentQueued:
		return 3
	default:
		return 4
	}
}

// SessionMark returns the mark of a session.
func SessionMark(s *api.Session) string {
	switch {
	case s.Status == agency.SessionComplete:
		return "✓"
	case s.Status == agency.SessionFailed:
		return "✕"
	case s.Status == agency.SessionCancelled:
		return "-"
	case s.NeedsUser():
		return "◐"
	default:
		return "●"
	}
}

// SessionStatus returns the status of a session, or the change in progress.
func SessionStatus(s *api.Session) string {
	if s.Cancelling {
		return "being cancelled"
	}
	return string(s.Status)
}

// AgentMark returns the mark of an agent of a session.
func AgentMark(a *api.SessionAgent) string {
	switch {
	case a.NeedsUser:
		return "◐"
	case betweenAttempts(a):
		return "○"
	case a.Status == agency.AgentRunning:
		return "●"
	case a.Status == agency.AgentComplete:
		return "✓"
	case a.Status == agency.AgentFailed:
		return "✕"
	case a.Status == agency.AgentCancelled:
		return "-"
	default:
		return "○"
	}
}

// AgentStatus returns the status of an agent, or what its run waits for.
func AgentStatus(a *api.SessionAgent) string {
	if a.Status == agency.AgentRunning && a.NeedsUser {
		return string(a.Label)
	}
	if betweenAttempts(a) {
		return "waiting"
	}
	return string(a.Status)
}

// AgentName returns the name of an agent if it differs from its id, else "". It is untrusted text.
func AgentName(a *api.SessionAgent) string {
	if plain.OneLine(a.Name) == a.ID {
		return ""
	}
	return a.Name
}

// betweenAttempts reports whether an agent has no attempt and waits for the next one.
func betweenAttempts(a *api.SessionAgent) bool {
	return a.Status == agency.AgentRunning && (a.NotBefore != nil || a.WaitReason != "") && !a.NeedsUser
}

// AgentNote returns the note about an agent: its problem, its summary, or what it waits for. It is
// untrusted text.
func AgentNote(a *api.SessionAgent) string {
	switch {
	case betweenAttempts(a):
		until := ": " + a.WaitReason
		if a.WaitReason == "" {
			until = " at " + a.NotBefore.Local().Format("15:04:05")
		}
		return fmt.Sprintf("attempt %d%s (%s)", a.Attempts+1, until, strings.TrimPrefix(a.Error, agency.WaitingWord))
	case a.Error != "":
		return a.Error
	case a.Note != "" && (a.Status != agency.AgentComplete || a.Label == agency.ReadyForReview): // an older report may be out of date
		return a.Note
	default:
		return a.WaitReason
	}
}

// Counts returns the numbers of agents as text, those that need attention first. waiting is the number of agents
// that need a user, which t does not count.
func Counts(t agency.Counts, waiting int) string {
	words := []string{}
	for _, part := range []struct {
		n    int
		word string
	}{
		{waiting, "needs you"}, {t.Failed, "failed"}, {t.Running, "running"}, {t.Queued, "queued"}, {t.Complete, "done"}, {t.Cancelled, "cancelled"},
	} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return strings.Join(words, ", ")
}

// SessionEnding returns how a session has settled and, if it did not succeed, the first reason. It is untrusted
// text.
func SessionEnding(resp *api.ShowSessionResponse) string {
	s := &resp.Session
	text, culprit := fmt.Sprintf("%s: %s", s.Status, s.Summary.String()), agency.AgentFailed
	if s.Status == agency.SessionComplete {
		culprit = agency.AgentCancelled
	}
	for i := range resp.Agents {
		if a := &resp.Agents[i]; a.Status == culprit && a.Error != "" {
			return fmt.Sprintf("%s; %s: %s", text, a.ID, a.Error)
		}
	}
	return text
}

// SessionNeeds returns what a session needs a user for. It is untrusted text.
func SessionNeeds(resp *api.ShowSessionResponse) string {
	switch paused := resp.Session.Paused; paused {
	case "":
	case agency.PausedByHand:
		return "it was paused by hand"
	default:
		return "it is paused: " + paused
	}
	for i := range resp.Agents {
		switch a := &resp.Agents[i]; {
		case !a.NeedsUser:
		case a.Status == agency.AgentQueued:
			return "agent " + a.ID + " is " + a.Error
		default:
			text := fmt.Sprintf("agent %s is %s", a.ID, a.Label)
			if a.Label == agency.NeedsInput || a.Label == agency.NeedsAttention {
				text = fmt.Sprintf("agent %s %s", a.ID, a.Label)
			}
			if a.Note != "" {
				text += ": " + a.Note
			}
			return text
		}
	}
	return ""
}

// FitAgents returns the agents that fit into room lines, in the order of their waves, and counts the others. If
// there are several waves, each has a title of one line. 0 lines means no limit. If not all agents fit, those
// that need a user most are shown.
func FitAgents(agents []api.SessionAgent, room int) (shown []*api.SessionAgent, hidden agency.Counts) {
	shown = make([]*api.SessionAgent, len(agents))
	waves, place := map[int]bool{}, map[*api.SessionAgent]int{}
	for i := range agents {
		shown[i] = &agents[i]
		place[shown[i]] = i
		waves[shown[i].Wave] = true
	}
	titles := len(waves)
	if titles == 1 {
		titles = 0
	}
	if room > 0 && len(shown)+titles > room {
		slices.SortStableFunc(shown, func(a, b *api.SessionAgent) int { return cmp.Compare(Urgency(a), Urgency(b)) })
		many, used := titles > 0, 1 // the line that counts the others
		clear(waves)
		for n, a := range shown {
			cost := 1
			if many && !waves[a.Wave] {
				cost = 2
			}
			if used+cost > room {
				for _, other := range shown[n:] {
					hidden.Add(other.Status, 1)
				}
				shown = shown[:n]
				break
			}
			used, waves[a.Wave] = used+cost, true
		}
	}
	slices.SortFunc(shown, func(a, b *api.SessionAgent) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(place[a], place[b]))
	})
	return shown, hidden
}
