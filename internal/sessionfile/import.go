package sessionfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/plain"
)

// waveMembers are the members of a wave in a status file, in their order.
var waveMembers = []string{"wave", "status", "agents"}

// Import takes the data of a session from a status file whose agents are given: its source, its
// times, its waves, and all members that agency does not know. The id, the counts and the status
// are decided by agency. now replaces missing times. A value that no session can have, or that
// contradicts the agents, is E_USAGE.
func Import(s *agency.Session, head Object, agents []agency.SessionAgent, now time.Time) error {
	var version, status string
	var begun, ended *time.Time
	p := objectParser{object: head}
	p.text("schema_version", &version)
	p.text("source", &s.Source)
	p.text("source_file", &s.SourceFile)
	p.text("status", &status)
	p.time("started_at", &begun)
	p.time("completed_at", &ended)
	if version != "" && version != Version {
		p.fail("schema_version", "is not "+Version)
	}
	said := agency.SessionStatus(status)
	if statuses := []agency.SessionStatus{"", agency.SessionRunning, agency.SessionComplete, agency.SessionFailed, agency.SessionCancelled}; !slices.Contains(statuses, said) {
		p.fail("status", "is none of running, complete, failed, cancelled")
	}
	waves, err := putWaves(agents, head.Get("waves"))
	if p.err == nil {
		p.err = err
	}
	s.Counts = agency.CountsOf(agents)
	settleAs(s, said, begun, ended, now, &p)
	if p.err != nil {
		return agency.Errorf(agency.CodeUsage, "the session: %w", p.err).WithHint(`its document is as status.json, such as {"source": "orchestrate", "agents": [{"id": "001"}]}`)
	}
	var extra Object
	for _, m := range head {
		if !slices.Contains(fileMembers, m.Name) {
			extra = append(extra, m)
		}
	}
	if len(waves) > 0 {
		list := make([]json.RawMessage, len(waves))
		for i := range waves {
			list[i] = waves[i].compact()
		}
		text, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("encode the waves: %w", err)
		}
		extra.Set("waves", text)
	}
	if extra == nil {
		return nil
	}
	if s.Extra = extra.compact(); len(s.Extra) > agency.ExternalExtraLimit {
		return agency.Errorf(agency.CodeUsage, "the unknown members of the session have more than %d bytes", agency.ExternalExtraLimit).
			WithHint("keep what is large in a file of its own, and name that")
	}
	return nil
}

// settleAs sets the times of the session, and ends it when its agents have ended.
func settleAs(s *agency.Session, said agency.SessionStatus, begun, ended *time.Time, now time.Time, p *objectParser) {
	end := now
	if ended != nil {
		end = *ended
	}
	switch s.StartedAt = end; {
	case begun != nil:
		s.StartedAt = *begun
	case now.Before(end):
		s.StartedAt = now
	}
	if said == agency.SessionCancelled {
		s.CancelAt = &end
	}
	s.Settle(end)
	switch {
	case said.Final() && said != "" && said != s.Status:
		p.fail("status", fmt.Sprintf("is %s, and by its agents it is %s", said, s.Status))
	case ended != nil && !s.Status.Final():
		p.fail("completed_at", "is given, and some of its agents have not ended")
	case ended != nil && ended.Before(s.StartedAt):
		p.fail("completed_at", "is before started_at")
	}
}

// putWaves sets the waves of agents that state none themselves. It returns the other data about
// waves: by number, the members that agency does not know, and those of waves without agents.
func putWaves(agents []agency.SessionAgent, waves json.RawMessage) ([]Object, error) {
	if empty(waves) {
		return nil, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(waves, &items) != nil {
		return nil, errors.New("waves is not an array")
	}
	index := make(map[string]int, len(agents))
	for i := range agents {
		index[agents[i].ID] = i
	}
	var kept []Object
	seen := map[int]bool{}
	for i, item := range items {
		wave, err := ParseObject(item)
		if err != nil {
			return nil, fmt.Errorf("waves[%d]: %w", i, err)
		}
		number := waveNumber(wave)
		var ids []string
		if given := wave.Get("agents"); given != nil && json.Unmarshal(given, &ids) != nil {
			return nil, fmt.Errorf("waves[%d]: agents is not an array of ids", i)
		}
		if number < 1 || seen[number] {
			return nil, fmt.Errorf("waves[%d]: wave is not a number from 1 that no other wave has", i)
		}
		seen[number] = true
		for _, id := range ids {
			at, ok := index[id]
			if !ok || agents[at].Wave != 0 && agents[at].Wave != number {
				return nil, fmt.Errorf("wave %d has agent %q, which is in no such wave", number, plain.Clip(id))
			}
			agents[at].Wave = number
		}
		if len(ids) == 0 || slices.ContainsFunc(wave, func(m Member) bool { return !slices.Contains(waveMembers, m.Name) }) {
			kept = append(kept, wave)
		}
	}
	slices.SortFunc(kept, func(a, b Object) int { return waveNumber(a) - waveNumber(b) })
	return kept, nil
}

// waveNumber returns the number of a wave; 0 when it has none.
func waveNumber(wave Object) int {
	var n int
	if json.Unmarshal(wave.Get("wave"), &n) != nil {
		return 0
	}
	return n
}

// keptWaves returns the data that putWaves kept.
func keptWaves(extra json.RawMessage) []Object {
	if extra == nil {
		return nil
	}
	members, err := ParseObject(extra)
	if err != nil {
		return nil // only parsed text is stored
	}
	var items []json.RawMessage
	if waves := members.Get("waves"); waves == nil || json.Unmarshal(waves, &items) != nil {
		return nil
	}
	kept := make([]Object, 0, len(items))
	for _, item := range items {
		if wave, err := ParseObject(item); err == nil {
			kept = append(kept, wave)
		}
	}
	return kept
}

// filedWaves returns waves in the form of a status file, with their kept data.
func filedWaves(waves []Wave, kept []Object) json.RawMessage {
	text := []byte{'['}
	next := func() {
		if len(text) > 1 {
			text = append(text, ',')
		}
	}
	for _, w := range waves {
		for ; len(kept) > 0 && waveNumber(kept[0]) < w.Wave; kept = kept[1:] {
			next()
			text = append(text, kept[0].compact()...)
		}
		next()
		text = append(strconv.AppendInt(append(text, `{"wave":`...), int64(w.Wave), 10), `,"status":`...)
		text = append(append(text, jsonText(string(w.Status))...), `,"agents":[`...)
		for k, id := range w.Agents {
			if k > 0 {
				text = append(text, ',')
			}
			text = append(text, jsonText(id)...)
		}
		text = append(text, ']')
		if len(kept) > 0 && waveNumber(kept[0]) == w.Wave {
			for _, m := range kept[0] {
				if !slices.Contains(waveMembers, m.Name) {
					text = append(append(append(append(text, `,"`...), m.Name...), `":`...), m.Value...)
				}
			}
			kept = kept[1:]
		}
		text = append(text, '}')
	}
	for _, wave := range kept {
		next()
		text = append(text, wave.compact()...)
	}
	return append(text, ']')
}

// objectParser reads the members of an agent or a session and keeps the first error.
type objectParser struct {
	object Object
	err    error
}

func (p *objectParser) fail(member, what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s %s", member, what)
	}
}

// value returns a member that is present and not null.
func (p *objectParser) value(member string) (json.RawMessage, bool) {
	value := p.object.Get(member)
	return value, value != nil && string(value) != "null"
}

func (p *objectParser) text(member string, to *string) {
	value, ok := p.value(member)
	if !ok {
		return
	}
	switch err := json.Unmarshal(value, to); {
	case err != nil:
		p.fail(member, "is not a string")
	case len(*to) > agency.ExternalTextLimit:
		p.fail(member, fmt.Sprintf("has more than %d bytes", agency.ExternalTextLimit))
	case strings.ContainsRune(*to, 0):
		p.fail(member, "has a zero byte in it")
	}
}

func (p *objectParser) whole(member string, set func(int)) {
	value, ok := p.value(member)
	if !ok {
		return
	}
	var n int
	if json.Unmarshal(value, &n) != nil {
		p.fail(member, "is not a whole number")
		return
	}
	set(n)
}

func (p *objectParser) time(member string, to **time.Time) {
	if _, ok := p.value(member); !ok {
		return
	}
	var text string
	p.text(member, &text)
	at, err := parseFileTime(text)
	if err != nil {
		p.fail(member, "is not a time such as 2026-02-01T14:30:22Z")
		return
	}
	at = at.UTC().Truncate(time.Second) // in the precision of the status files
	*to = &at
}

// parseFileTime reads a time that an executor wrote; one without a zone is UTC.
func parseFileTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("no time")
}
