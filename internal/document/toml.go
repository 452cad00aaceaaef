package document

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML reads a document of TOML. The tree is valid even when the text is not TOML: it then ends
// before the first fault.
//
// The tree with places comes from the unstable part of the library. The decoder checks more rules
// (dates, ranges of numbers, tables that begin twice) but stops at the first broken one, so both
// are used.
func TOML(data []byte) (root *Value, faults []Problem) {
	root = &Value{Kind: Table}
	table := root
	walk := tomlWalker{data: data}
	walk.Reset(data)
	for walk.NextExpression() {
		switch node := walk.Expression(); node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = walk.header(root, node)
		case unstable.KeyValue:
			walk.keyValue(table, node)
		default: // comments
		}
	}
	var document map[string]any
	if err := toml.Unmarshal(data, &document); err != nil {
		fault := Problem{Text: strings.TrimPrefix(err.Error(), "toml: ")}
		if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
			fault.At.Line, fault.At.Column = decode.Position()
		}
		faults = append(faults, fault)
	}
	if err, ok := errors.AsType[*unstable.ParserError](walk.Error()); ok {
		faults = append(faults, Problem{At: walk.position(walk.Range(err.Highlight).Offset), Text: err.Message})
	}
	return root, faults
}

// tomlWalker is the parser of the library, with the places that the library leaves out.
type tomlWalker struct {
	unstable.Parser
	data []byte
}

func (w *tomlWalker) position(offset uint32) Position { return positionAt(w.data, int(offset)) }

// add puts a new value into a table, after those of the same key.
func (v *Value) add(key string, value *Value) *Value {
	if v.last == nil {
		v.last = map[string]*Value{}
	}
	v.last[key] = value
	v.Fields = append(v.Fields, &Field{key, value.At, value})
	return value
}

// descend follows a dotted key to the table that holds its last part, and creates the missing
// tables on the way. It also returns that part and its place.
func (w *tomlWalker) descend(table *Value, key unstable.Iterator) (in *Value, name string, at Position) {
	for key.Next() {
		node := key.Node()
		name, at = string(node.Data), w.position(node.Raw.Offset)
		if key.IsLast() {
			break
		}
		next := table.last[name]
		if next != nil && next.Kind == List && len(next.Items) > 0 {
			next = next.Items[len(next.Items)-1] // for a list of tables, the last one
		}
		if next == nil || next.Kind != Table {
			next = table.add(name, &Value{Kind: Table, At: at})
		}
		table = next
	}
	return table, name, at
}

// header begins the table of a line [table] or [[list of tables]].
func (w *tomlWalker) header(root *Value, node *unstable.Node) *Value {
	table, name, at := w.descend(root, node.Key())
	begun := &Value{Kind: Table, At: at, Header: at}
	was := table.last[name]
	switch {
	case node.Kind == unstable.ArrayTable && was != nil && was.Kind == List:
		was.Items = append(was.Items, begun)
	case node.Kind == unstable.ArrayTable:
		table.add(name, &Value{Kind: List, At: at, Items: []*Value{begun}})
	case was != nil && was.Kind == Table && was.Header == Position{}:
		was.Header = at
		return was
	default:
		table.add(name, begun)
	}
	return begun
}

func (w *tomlWalker) keyValue(table *Value, node *unstable.Node) {
	table, name, at := w.descend(table, node.Key())
	begin := 0
	for key := node.Key(); key.Next(); {
		begin = int(key.Node().Raw.Offset + key.Node().Raw.Length)
	}
	for begin < len(w.data) && strings.IndexByte(" \t=", w.data[begin]) >= 0 {
		begin++
	}
	v := table.add(name, &Value{At: at, Span: [2]int{begin, int(node.Raw.Offset + node.Raw.Length)}})
	w.fill(v, node.Value())
}

var tomlKinds = map[unstable.Kind]Kind{
	unstable.String: Text, unstable.Integer: Integer, unstable.Float: Float, unstable.Bool: Boolean, unstable.Array: List, unstable.InlineTable: Table,
}

// fill reads one value, whose place is already set.
func (w *tomlWalker) fill(v *Value, node *unstable.Node) {
	kind, known := tomlKinds[node.Kind]
	if !known {
		kind = Time
	}
	v.Kind, v.Text = kind, string(node.Data)
	for children := node.Children(); children.Next(); {
		if kind == Table {
			w.keyValue(v, children.Node())
			continue
		}
		item := &Value{At: v.At}
		w.fill(item, children.Node())
		v.Items = append(v.Items, item)
	}
}
