package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agency"
)

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// collect reads all rows and closes them. The result is never nil unless there is an error.
func collect[T any](rows *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer func() { _ = rows.Close() }()
	all := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// marks are n parameters: "?, ?, ?".
func marks(n int) string { return strings.Repeat(", ?", n)[2:] }

// Times are stored as whole milliseconds: the driver would write a time.Time as text, monotonic clock included.

func millis(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func instant(ms *int64) *time.Time {
	if ms == nil {
		return nil
	}
	return new(fromMillis(*ms))
}

func number(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

// A process is stored as "pid ticks boot": a list of runs reads two of them per run, and as JSON they would cost as
// much as all the plain columns of the row.

func process(p *agency.Process) any {
	if p == nil {
		return nil
	}
	return fmt.Sprintf("%d %d %s", p.PID, p.StartTicks, p.BootID)
}

func fromProcess(text *string) (*agency.Process, error) {
	if text == nil {
		return nil, nil
	}
	pid, rest, _ := strings.Cut(*text, " ")
	ticks, boot, _ := strings.Cut(rest, " ")
	p := &agency.Process{BootID: boot}
	var err1, err2 error
	p.PID, err1 = strconv.Atoi(pid)
	p.StartTicks, err2 = strconv.ParseUint(ticks, 10, 64)
	return p, errors.Join(err1, err2)
}

func contract(c *agency.Contract) (any, error) {
	if c == nil {
		return nil, nil
	}
	text, err := json.Marshal(c)
	return string(text), err
}

func fromContract(text *string) (*agency.Contract, error) {
	if text == nil {
		return nil, nil
	}
	c := new(agency.Contract)
	return c, json.Unmarshal([]byte(*text), c)
}

// list is an array of texts as JSON, and nil as the empty one.
func list(items []string) (string, error) {
	if len(items) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(items)
	return string(text), err
}

func fromList(text string) ([]string, error) {
	if text == "[]" {
		return []string{}, nil
	}
	if !strings.Contains(text, `\`) {
		// Nothing is escaped, so every quote is a border: much faster than the decoder.
		return strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, `["`), `"]`), `","`), nil
	}
	var items []string
	err := json.Unmarshal([]byte(text), &items)
	return items, err
}
