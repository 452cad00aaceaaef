package sessionfile

import (
	"math"
	"slices"

	"agency"
)

// ParseAgent reads one agent of a status file. Only id is required. What the fields cannot express
// goes into Extra and Absent, so that AgentObject writes the same again. An invalid value is
// E_USAGE.
func ParseAgent(o Object) (agency.SessionAgent, error) {
	a := agency.SessionAgent{Status: agency.AgentQueued}
	p := objectParser{object: o}
	p.text("id", &a.ID)
	if p.err == nil {
		p.err = agency.CheckAgentID(a.ID)
	}
	p.text("name", &a.Name)
	p.text("prompt_path", &a.PromptPath)
	p.text("log_file", &a.LogFile)
	p.text("model", &a.Model)
	p.text("error", &a.Error)
	status := string(a.Status)
	p.text("status", &status)
	a.Status = agency.AgentStatus(status)
	p.whole("wave", func(n int) { a.Wave = n })
	p.time("started_at", &a.StartedAt)
	p.time("completed_at", &a.CompletedAt)
	p.whole("exit_code", func(n int) { a.ExitCode = &n })
	p.whole("pid", func(n int) { a.PID = &n })
	if !slices.Contains(agency.AgentStatuses(), a.Status) {
		p.fail("status", "is none of queued, running, complete, failed, cancelled")
	}
	if a.PID != nil && (*a.PID <= 0 || *a.PID > math.MaxInt32) {
		p.fail("pid", "is not the number of a process")
	}
	if a.Wave < 0 {
		p.fail("wave", "is less than 0")
	}
	if p.err != nil {
		name := a.ID
		if name == "" {
			name = "without an id"
		}
		return a, agency.Errorf(agency.CodeUsage, "agent %s: %w", name, p.err).WithHint(`an agent is an object as in status.json, such as {"id": "001", "name": "fix-auth"}`)
	}
	for _, name := range agentMembers {
		if o.Get(name) == nil {
			a.Absent = append(a.Absent, name)
		}
	}
	var extra Object
	said := AgentObject(&a)
	for _, m := range o {
		if value := said.Get(m.Name); value == nil || empty(value) && string(m.Value) != string(value) {
			extra = append(extra, m)
		}
	}
	if extra != nil {
		if a.Extra = extra.compact(); len(a.Extra) > agency.ExternalExtraLimit {
			return a, agency.Errorf(agency.CodeUsage, "agent %s: its unknown members have more than %d bytes", a.ID, agency.ExternalExtraLimit).
				WithHint("say less here and put the rest into its log file")
		}
	}
	return a, nil
}

// StaysAbsent reports whether a member that an executor left out is left out of the status file,
// too. The other members are the agent's state, and are always present.
func StaysAbsent(member string) bool {
	return member == "name" || member == "prompt_path" || member == "wave" || member == "model"
}
