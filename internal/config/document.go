package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// position is a place in the file, from 1; a column counts bytes. The zero position is none.
type position struct{ line, column int }

// part is one part of a dotted key.
type part struct {
	name string
	at   position
}

// entry is one table header, or one key with its value.
type entry struct {
	path  []part
	value value
}

// value is what stands behind a key.
type value struct {
	kind  unstable.Kind // Table and ArrayTable for headers
	text  string        // of a string what it means, of a number or boolean what is written
	items []value       // of an array; arrays in arrays stay empty
	span  [2]int        // of a text or a boolean: where it begins and ends, in bytes
}

// words names the value for people.
func (v value) words() string {
	switch v.kind {
	case unstable.String:
		return "text"
	case unstable.Integer, unstable.Float, unstable.Bool:
		return v.text
	case unstable.Array:
		return "a list"
	case unstable.Table, unstable.InlineTable:
		return "a table"
	case unstable.ArrayTable:
		return "a list of tables"
	default:
		return "a date or time"
	}
}

// parse takes a document apart in the order of its lines, inline tables included. Where it is not TOML, the entries are
// those before the first fault.
//
// The tree with positions is the unstable part of the library. The decoder knows more rules (double keys, dates, ranges
// of numbers) but stops at the first that is broken, so both are asked.
func parse(data []byte) ([]entry, []problem) {
	var entries []entry
	var faults []problem
	var table []part
	walk := walker{data: data}
	walk.Reset(data)
	for walk.NextExpression() {
		node := walk.Expression()
		switch node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = walk.path(nil, node.Key())
			entries = append(entries, entry{table, value{kind: node.Kind}})
		case unstable.KeyValue:
			entries = walk.keyValue(entries, table, node)
		default: // comments
		}
	}
	var document map[string]any
	if err := toml.Unmarshal(data, &document); err != nil {
		fault := problem{text: strings.TrimPrefix(err.Error(), "toml: ")}
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			fault.at.line, fault.at.column = decode.Position()
		}
		faults = append(faults, fault)
	}
	if err := (*unstable.ParserError)(nil); errors.As(walk.Error(), &err) {
		faults = append(faults, problem{at: walk.position(int(walk.Range(err.Highlight).Offset)), text: err.Message})
	}
	return entries, faults
}

// walker is the parser of the library, with the places that it leaves out.
type walker struct {
	unstable.Parser
	data []byte

	// What was counted so far: places are asked for in rising order, so the document is read once.
	offset, line, lineStart int
}

func (w *walker) position(offset int) position {
	if offset < w.offset {
		w.offset, w.line, w.lineStart = 0, 0, 0
	}
	seen := w.data[w.offset:offset]
	if n := bytes.Count(seen, []byte{'\n'}); n > 0 {
		w.line += n
		w.lineStart = w.offset + bytes.LastIndexByte(seen, '\n') + 1
	}
	w.offset = offset
	return position{w.line + 1, offset - w.lineStart + 1}
}

// depth is one more than the longest known key has parts: whatever is as deep is unknown, and the rest of it no matter.
const depth = 5

// path is the table's path with the parts of a key behind it, as far as depth.
func (w *walker) path(table []part, key unstable.Iterator) []part {
	path := append([]part(nil), table...)
	for key.Next() && len(path) < depth {
		node := key.Node()
		path = append(path, part{string(node.Data), w.position(int(node.Raw.Offset))})
	}
	return path
}

func (w *walker) keyValue(entries []entry, table []part, node *unstable.Node) []entry {
	path := w.path(table, node.Key())
	v := scalar(node.Value())
	switch v.kind {
	case unstable.Array:
		for items := node.Value().Children(); items.Next(); {
			v.items = append(v.items, scalar(items.Node()))
		}
	case unstable.InlineTable:
		entries = append(entries, entry{path, v})
		for fields := node.Value().Children(); fields.Next(); {
			entries = w.keyValue(entries, path, fields.Node())
		}
		return entries
	default: // one value
	}
	return append(entries, entry{path, v})
}

func scalar(node *unstable.Node) value {
	begin := int(node.Raw.Offset)
	return value{kind: node.Kind, text: string(node.Data), span: [2]int{begin, begin + int(node.Raw.Length)}}
}
