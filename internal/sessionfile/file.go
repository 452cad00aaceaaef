// Package sessionfile reads, checks and writes status.json, the file of schema 1.0 in which other
// programs read and report sessions.
package sessionfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agency"
)

// Version is the schema of the status files.
const Version = "1.0"

// The members of a status file and of an agent in it, in their order.
var (
	fileMembers = []string{
		"schema_version", "session_id", "source", "source_file", "started_at", "completed_at", "status", "agents", "summary", "waves",
	}
	agentMembers = []string{
		"id", "name", "prompt_path", "status", "wave", "started_at", "completed_at", "duration_seconds", "exit_code", "pid", "log_file",
		"model", "error",
	}
)

// File is a status file, status.json, of schema 1.0. It may be partial: a missing member stays
// missing, a null stays null, and unknown members are kept.
type File struct {
	// Head holds all members. The value of agents is in Agents.
	Head   Object
	Agents []Object
}

// Parse reads a status file. Text that is not JSON, or agents that are not objects with ids, are
// E_USAGE.
func Parse(data []byte) (*File, error) {
	fail := func(err error) (*File, error) {
		return nil, agency.Errorf(agency.CodeUsage, "read status file: %w", err).WithHint("it has the form of status.json, schema 1.0: {\"agents\": [{\"id\": \"001\"}]}")
	}
	head, err := ParseObject(data)
	if err != nil {
		return fail(err)
	}
	f := File{Head: head.inOrder(fileMembers)}
	raw := f.Head.Get("agents")
	if raw == nil {
		return &f, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		return fail(errors.New("agents is not an array"))
	}
	f.Agents = make([]Object, len(items))
	for i, item := range items {
		agent, err := ParseObject(item)
		if err != nil {
			return fail(fmt.Errorf("agents[%d]: %w", i, err))
		}
		f.Agents[i] = agent.inOrder(agentMembers)
	}
	f.Head.Set("agents", json.RawMessage("[]"))
	return &f, nil
}

// Encode writes the file as Python's json.dumps(indent=2, ensure_ascii=False) does: known members
// in the order of the schema, the others after them, no newline at the end. Numbers stay as they
// were written.
func (f *File) Encode() []byte {
	agents := make([][]byte, len(f.Agents))
	for i := range f.Agents {
		agents[i] = EncodeAgent(f.Agents[i])
	}
	return Encode(f.Head, agents)
}

// EncodeAgent encodes one agent for Encode.
func EncodeAgent(agent Object) []byte { return appendObject(nil, agent, 2) }

// Encode returns a status file with encoded agents.
func Encode(head Object, agents [][]byte) []byte {
	size := 4096
	for _, a := range agents {
		size += len(a) + 8
	}
	to := append(make([]byte, 0, size), '{')
	for i, m := range head {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(append(append(appendLine(to, 1), '"'), m.Name...), `": `...)
		if m.Name == "agents" {
			to = appendBlocks(to, agents)
		} else {
			to = appendValue(to, m.Value, 1)
		}
	}
	if len(head) > 0 {
		to = append(to, '\n')
	}
	return append(to, '}')
}

func appendBlocks(to []byte, blocks [][]byte) []byte {
	if len(blocks) == 0 {
		return append(to, "[]"...)
	}
	to = append(to, '[')
	for i, b := range blocks {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendLine(to, 2), b...)
	}
	return append(appendLine(to, 1), ']')
}

// Head returns the members of a status file about the session itself.
func Head(s *agency.Session, waves []Wave) Object {
	head := Object{
		{"schema_version", jsonText(Version)},
		{"session_id", jsonText(string(s.ID))},
		{"source", jsonText(s.Source)},
		{"source_file", jsonText(s.SourceFile)},
		{"started_at", jsonTime(&s.StartedAt)},
		{"completed_at", jsonTime(s.CompletedAt)},
		{"status", jsonText(string(s.Status))},
		{"agents", json.RawMessage("[]")},
		{"summary", summary(s.Counts)},
		{"waves", filedWaves(waves, keptWaves(s.Extra))},
	}
	return head.with(s.Extra)
}

// AgentObject returns an agent as an object of a status file.
func AgentObject(a *agency.SessionAgent) Object {
	took := json.RawMessage("null")
	if a.StartedAt != nil && a.CompletedAt != nil {
		took = strconv.AppendInt(nil, a.CompletedAt.Unix()-a.StartedAt.Unix(), 10) // difference of the times as they are written
	}
	failure := json.RawMessage("null")
	if a.Error != "" {
		failure = jsonText(a.Error)
	}
	agent := Object{
		{"id", jsonText(a.ID)},
		{"name", jsonText(a.Name)},
		{"prompt_path", jsonText(a.PromptPath)},
		{"status", jsonText(string(a.Status))},
		{"wave", strconv.AppendInt(nil, int64(a.Wave), 10)},
		{"started_at", jsonTime(a.StartedAt)},
		{"completed_at", jsonTime(a.CompletedAt)},
		{"duration_seconds", took},
		{"exit_code", jsonNumber(a.ExitCode)},
		{"pid", jsonNumber(a.PID)},
		{"log_file", jsonText(a.LogFile)},
		{"model", jsonText(a.Model)},
		{"error", failure},
	}
	if len(a.Absent) > 0 {
		// An agent's wave that only the list of waves stated is still left out of the agent.
		agent = slices.DeleteFunc(agent, func(m Member) bool {
			return (empty(m.Value) || m.Name == "wave") && slices.Contains(a.Absent, m.Name)
		})
	}
	return agent.with(a.Extra)
}

// empty reports whether the value of a known member has no information.
func empty(value json.RawMessage) bool {
	return value == nil || string(value) == "null" || string(value) == `""` || string(value) == "0"
}

// with adds the members of extra, an object. A present member is only replaced if its value is
// empty.
func (o Object) with(extra json.RawMessage) Object {
	if extra == nil {
		return o
	}
	members, err := ParseObject(extra)
	if err != nil {
		return o // only parsed text is stored
	}
	for _, m := range members {
		if empty(o.Get(m.Name)) {
			o.Set(m.Name, m.Value)
		}
	}
	return o
}

// Wave is one wave of a session.
type Wave struct {
	Wave   int
	Status agency.WaveStatus
	Agents []string
}

// Waves returns the waves of agents that are in the order of the plan.
func Waves(agents []agency.SessionAgent) []Wave {
	var waves []Wave
	index := map[int]int{}
	begun, final := map[int]bool{}, map[int]int{}
	for i := range agents {
		a := &agents[i]
		if a.Wave == 0 {
			continue
		}
		at, ok := index[a.Wave]
		if !ok {
			at = len(waves)
			index[a.Wave] = at
			waves = append(waves, Wave{Wave: a.Wave})
		}
		waves[at].Agents = append(waves[at].Agents, a.ID)
		begun[a.Wave] = begun[a.Wave] || a.Status != agency.AgentQueued
		if a.Status.Final() {
			final[a.Wave]++
		}
	}
	for i := range waves {
		w := &waves[i]
		switch {
		case final[w.Wave] == len(w.Agents):
			w.Status = agency.WaveComplete
		case begun[w.Wave]:
			w.Status = agency.WaveRunning
		default:
			w.Status = agency.WavePending
		}
	}
	slices.SortFunc(waves, func(a, b Wave) int { return a.Wave - b.Wave })
	return waves
}

func summary(t agency.Counts) json.RawMessage {
	return fmt.Appendf(nil, `{"total":%d,"queued":%d,"running":%d,"complete":%d,"failed":%d,"cancelled":%d}`,
		t.Total, t.Queued, t.Running, t.Complete, t.Failed, t.Cancelled)
}

// jsonTime returns a time in the form of the files: UTC, whole seconds.
func jsonTime(t *time.Time) json.RawMessage {
	if t == nil {
		return json.RawMessage("null")
	}
	return jsonText(t.UTC().Format(time.RFC3339))
}

func jsonNumber(n *int) json.RawMessage {
	if n == nil {
		return json.RawMessage("null")
	}
	return strconv.AppendInt(nil, int64(*n), 10)
}
