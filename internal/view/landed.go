package view

import (
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
)

// LandedWord returns where the work of an agent has landed, in a word or two: the branch, else its state; empty
// when nothing is known.
func LandedWord(l *api.AgentLanding) string {
	switch {
	case l == nil:
		return ""
	case l.State == string(agency.WorkLanded) && l.Into != "":
		return l.Into
	case l.State == string(agency.WorkPart):
		return "with " + l.Why
	default:
		return l.State
	}
}

// Landed returns in words how much of the work of the agents of a session has landed; empty when none has.
func Landed(agents []api.SessionAgent) string {
	landed, open, into := 0, 0, []string{}
	for i := range agents {
		switch l := agents[i].Landed; {
		case l == nil:
			if agents[i].Status == agency.AgentFailed || agents[i].Status == agency.AgentCancelled || agents[i].Result != nil && !agents[i].Result.Changed() {
				continue
			}
			open++
		case l.State == string(agency.WorkLanded):
			landed++
			if l.Into != "" && !slices.Contains(into, l.Into) {
				into = append(into, l.Into)
			}
		case l.State != string(agency.WorkPart) && l.State != string(agency.WorkNothing):
			open++
		}
	}
	where := ""
	if len(into) > 0 {
		where = ", in " + strings.Join(into, ", ")
	}
	switch {
	case landed == 0:
		return ""
	case open == 0:
		return "all" + where
	default:
		return fmt.Sprintf("%d of %d%s", landed, landed+open, where)
	}
}
