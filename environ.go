package agency

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Environ is an environment, NAME=value each. In JSON a variable is a string or, when it is not
// valid UTF-8, an object with its bytes: {"base64": "..."}.
type Environ []string

// Lookup returns the value of a variable, or "" for one that is not set. If it is set twice, the
// last one counts, as in a child process.
func (e Environ) Lookup(name string) string {
	for _, kv := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Without returns a copy without the named variables.
func (e Environ) Without(names ...string) Environ {
	return e.WithoutFunc(func(name string) bool { return slices.Contains(names, name) })
}

// WithoutFunc returns a copy without the variables whose names drop selects, and without entries
// that are not NAME=value.
func (e Environ) WithoutFunc(drop func(name string) bool) Environ {
	return slices.DeleteFunc(slices.Clone(e), func(kv string) bool {
		name, _, ok := strings.Cut(kv, "=")
		return !ok || name == "" || drop(name)
	})
}

type environBytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes every variable so that UnmarshalJSON restores its bytes.
func (e Environ) MarshalJSON() ([]byte, error) {
	list := make([]any, 0, len(e))
	for _, kv := range e {
		if utf8.ValidString(kv) {
			list = append(list, kv)
		} else {
			list = append(list, environBytes{[]byte(kv)})
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Environ) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("an environment is a list: %w", err)
	}
	*e = make(Environ, 0, len(list))
	for _, item := range list {
		var text string
		if json.Unmarshal(item, &text) != nil {
			var raw environBytes
			if err := json.Unmarshal(item, &raw); err != nil {
				return fmt.Errorf("a variable is a text or its bytes: %w", err)
			}
			text = string(raw.Base64)
		}
		*e = append(*e, text)
	}
	return nil
}
