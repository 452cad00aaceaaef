package agency

import (
	"bytes"
	"encoding/json"
	"time"
)

// plainAgent is a PlanAgent without its own way into JSON.
type plainAgent PlanAgent

// MarshalJSON writes times in whole milliseconds, as everything else does.
func (a PlanAgent) MarshalJSON() ([]byte, error) {
	a.Timeout /= time.Millisecond
	a.IdleTimeout /= time.Millisecond
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // prompts are full of what would be escaped
	err := enc.Encode(plainAgent(a))
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *PlanAgent) UnmarshalJSON(data []byte) error {
	var p plainAgent
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	p.Timeout *= time.Millisecond
	p.IdleTimeout *= time.Millisecond
	*a = PlanAgent(p)
	return nil
}
