package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"agency"
)

// runFields are the indexes of the fields of a run by their names in JSON.
var runFields = sync.OnceValue(func() map[string]int {
	fields := map[string]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = i
	}
	return fields
})

// Only returns a response that encodes these fields of each run and no others, the response itself
// when there are none. E_USAGE: a run has no such field. Most of what a list costs is to encode and
// to decode fields that a table does not show.
func (r ListRunsResponse) Only(names []string) (any, error) {
	if len(names) == 0 {
		return r, nil
	}
	for _, name := range names {
		if _, known := runFields()[name]; !known {
			return nil, agency.Errorf(agency.CodeUsage, "fields: a run has no field %q", name).WithHint("its fields: agency ls --json")
		}
	}
	return struct {
		Runs partialRuns `json:"runs"`
	}{partialRuns{r.Runs, names}}, nil
}

// partialRuns encodes some fields of runs.
type partialRuns struct {
	runs  []Run
	names []string
}

// MarshalJSON implements json.Marshaler.
func (p partialRuns) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	text.WriteByte('[')
	for i := range p.runs {
		if i > 0 {
			text.WriteByte(',')
		}
		run, before := reflect.ValueOf(&p.runs[i]).Elem(), "{"
		for _, name := range p.names {
			text.WriteString(before + `"` + name + `":`)
			before = ","
			if err := enc.Encode(run.Field(runFields()[name]).Interface()); err != nil {
				return nil, err
			}
		}
		text.WriteByte('}')
	}
	text.WriteByte(']')
	return text.Bytes(), nil
}
