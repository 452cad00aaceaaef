package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
)

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// collect reads all rows and closes them. The result is nil only with an error.
func collect[T any](rows *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer func() { _ = rows.Close() }()
	all := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		if len(all) == cap(all) {
			// A run is large: append would grow in small steps and copy each run several times.
			all = slices.Grow(all, max(len(all), 16))
		}
		all = append(all, item)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// column stores the value of one column. Scanning into fields of our own types without it goes
// through reflection and, for numbers, through text.
type column func(value any) error

// Scan implements sql.Scanner.
func (c column) Scan(value any) error { return c(value) }

// as returns a column of the driver's type V. For null it calls set with the zero value and false.
func as[V any](set func(v V, ok bool) error) column {
	return func(value any) error {
		v, ok := value.(V)
		if !ok && value != nil {
			return fmt.Errorf("it holds %T, not %T", value, v)
		}
		return set(v, ok)
	}
}

func text[T ~string](to *T) column {
	return as(func(s string, _ bool) error { *to = T(s); return nil })
}

func whole[T ~int | ~int64](to *T) column {
	return as(func(n int64, _ bool) error { *to = T(n); return nil })
}

func flag(to *bool) column {
	return as(func(n int64, _ bool) error { *to = n != 0; return nil })
}

func optional(to **int) column {
	return as(func(n int64, ok bool) error {
		if ok {
			*to = new(int(n))
		}
		return nil
	})
}

// columns counts the columns in a list of them.
func columns(list string) int { return strings.Count(list, ",") + 1 }

// marks returns n parameters: "?, ?, ?".
func marks(n int) string { return strings.Repeat(", ?", n)[2:] }

// Times are stored as whole milliseconds: the driver would write a time.Time as text, including its
// monotonic reading.

func millis(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// moment returns a column for a time; null becomes the zero time.
func moment(to *time.Time) column {
	return as(func(ms int64, ok bool) error {
		if ok {
			*to = fromMillis(ms)
		}
		return nil
	})
}

func optionalMoment(to **time.Time) column {
	return as(func(ms int64, ok bool) error {
		if ok {
			*to = new(fromMillis(ms))
		}
		return nil
	})
}

func number(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

// process returns a process as "pid ticks boot": a list of runs reads two of them per run, and as
// JSON they would cost as much as all the plain columns of the row.

func process(p *agency.Process) any {
	if p == nil {
		return nil
	}
	return fmt.Sprintf("%d %d %s", p.PID, p.StartTicks, p.BootID)
}

func toProcess(to **agency.Process) column {
	return as(func(text string, ok bool) error {
		if !ok {
			return nil
		}
		pid, rest, _ := strings.Cut(text, " ")
		ticks, boot, _ := strings.Cut(rest, " ")
		p := &agency.Process{BootID: boot}
		var err1, err2 error
		p.PID, err1 = strconv.Atoi(pid)
		p.StartTicks, err2 = strconv.ParseUint(ticks, 10, 64)
		*to = p
		return errors.Join(err1, err2)
	})
}

// changes returns the size of a change as "files added deleted": every run of a list may have one.
func changes(c *agency.ChangeSize) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d", c.Files, c.Added, c.Deleted)
}

func toChanges(to **agency.ChangeSize) column {
	return as(func(text string, _ bool) error {
		if text == "" {
			return nil
		}
		files, rest, _ := strings.Cut(text, " ")
		added, deleted, _ := strings.Cut(rest, " ")
		c := &agency.ChangeSize{}
		var err1, err2, err3 error
		c.Files, err1 = strconv.Atoi(files)
		c.Added, err2 = strconv.Atoi(added)
		c.Deleted, err3 = strconv.Atoi(deleted)
		*to = c
		return errors.Join(err1, err2, err3)
	})
}

func contract(c *agency.Contract) (any, error) {
	if c == nil {
		return nil, nil
	}
	text, err := json.Marshal(c)
	return string(text), err
}

func toContract(to **agency.Contract) column {
	return as(func(text string, ok bool) error {
		if !ok {
			return nil
		}
		*to = new(agency.Contract)
		return json.Unmarshal([]byte(text), *to)
	})
}

// rare returns a value that most runs do not have, as JSON; nil is the empty text.
func rare[T any](v *T) (string, error) {
	if v == nil {
		return "", nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

func toRare[T any](to **T) column {
	return as(func(text string, _ bool) error {
		if text == "" {
			return nil
		}
		*to = new(T)
		return json.Unmarshal([]byte(text), *to)
	})
}

// resources returns what a run may use as JSON; empty for one without limits, as most are.
func resources(r agency.Resources) (string, error) {
	if r == (agency.Resources{}) {
		return "", nil
	}
	return rare(&r)
}

func toResources(to *agency.Resources) column {
	return as(func(text string, _ bool) error {
		if text == "" {
			return nil
		}
		return json.Unmarshal([]byte(text), to)
	})
}

// agentState returns an agent's state as JSON. It is null for an attempt of which nothing is known,
// as for most.
func agentState(s *agency.AgentState) (any, error) {
	if len(s.Sources) == 0 && s.Offset == 0 && s.Turn == "" && len(s.Todos) == 0 && s.PromptAt.IsZero() && s.Reported == nil && s.ReportsOffset == 0 {
		return nil, nil
	}
	text, err := json.Marshal(s)
	return string(text), err
}

func toAgentState(to *agency.AgentState) column {
	return as(func(text string, ok bool) error {
		if !ok {
			return nil
		}
		return json.Unmarshal([]byte(text), to)
	})
}

// list returns an array of texts as JSON; nil is the empty array.
func list(items []string) (string, error) {
	if len(items) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(items)
	return string(text), err
}

func toList(to *[]string) column {
	return as(func(text string, _ bool) error {
		switch {
		case text == "[]":
			*to = []string{}
		case strings.Contains(text, `\`):
			return json.Unmarshal([]byte(text), to)
		default:
			// The text has no escapes, so every quote is a delimiter; this is much faster than the
			// decoder.
			*to = strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, `["`), `"]`), `","`)
		}
		return nil
	})
}
