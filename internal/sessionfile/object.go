package sessionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Object is a JSON object whose members keep their order. Of two with the same name the last counts, in the place of the
// first.
type Object []Member

// Member is one member. Its name is what stands between the quotes, in the form that appendQuoted gives it; its value is as
// it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Get is the value of a member; nil when there is none.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Set puts a value in the place of the one before, or behind all others.
func (o *Object) Set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member{name, value})
}

// inOrder has the members that order names come first and in that order, the others as they are behind them.
func (o Object) inOrder(order []string) Object {
	sorted := make(Object, 0, len(o))
	for _, name := range order {
		if value := o.Get(name); value != nil {
			sorted = append(sorted, Member{name, value})
		}
	}
	for _, m := range o {
		if !slices.Contains(order, m.Name) {
			sorted = append(sorted, m)
		}
	}
	return sorted
}

// compact is the object on one line.
func (o Object) compact() json.RawMessage {
	text := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(append(text, '"'), m.Name...), `":`...), m.Value...)
	}
	return append(text, '}')
}

// ParseObject reads one JSON object, strictly.
func ParseObject(data []byte) (Object, error) {
	o, err := parseObject(data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return o, err
}

func parseObject(data []byte) (Object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	var o Object
	for dec.More() {
		start := dec.InputOffset()
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
		// The decoder's own word on a name loses lone halves of surrogate pairs.
		quoted := data[start:dec.InputOffset()]
		name := appendQuoted(nil, quoted[bytes.IndexByte(quoted, '"'):])
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.Set(string(name[1:len(name)-1]), value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(data[dec.InputOffset():]); len(rest) > 0 {
		return nil, errors.New("something follows the JSON object")
	}
	return o, nil
}

// appendObject writes an object over several lines, its members one level deeper than indent.
func appendObject(to []byte, o Object, indent int) []byte {
	if len(o) == 0 {
		return append(to, "{}"...)
	}
	to = append(to, '{')
	for i, m := range o {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendLine(to, indent+1)
		to = append(append(append(to, '"'), m.Name...), `": `...)
		to = appendValue(to, m.Value, indent+1)
	}
	return append(appendLine(to, indent), '}')
}

// appendLine begins a line at a level of two spaces each.
func appendLine(to []byte, level int) []byte {
	to = append(to, '\n')
	for range level {
		to = append(to, "  "...)
	}
	return to
}

// appendValue writes a valid JSON value as Python's json.dumps(indent=2, ensure_ascii=False) does, except that numbers stay as
// they were written.
func appendValue(to, value []byte, level int) []byte {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case ' ', '\t', '\n', '\r':
		case '"':
			end := endOfString(value, i)
			to = appendQuoted(to, value[i:end])
			i = end - 1
		case '{', '[':
			to = append(to, c)
			if next := bytes.TrimLeft(value[i+1:], " \t\n\r"); next[0] == c+2 { // the closing ones are two further in ASCII
				to = append(to, c+2)
				i = len(value) - len(next)
				continue
			}
			level++
			to = appendLine(to, level)
		case '}', ']':
			level--
			to = append(appendLine(to, level), c)
		case ',':
			to = appendLine(append(to, c), level)
		case ':':
			to = append(to, ": "...)
		default:
			to = append(to, c)
		}
	}
	return to
}

// endOfString is the index behind the string that begins at start.
func endOfString(text []byte, start int) int {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// appendQuoted writes a valid JSON string again, with no escape that it does not need. A lone half of a surrogate pair needs its
// own: there is no other way to write it.
func appendQuoted(to, quoted []byte) []byte {
	to = append(to, '"')
	for i := 1; i < len(quoted)-1; i++ {
		if quoted[i] != '\\' {
			to = append(to, quoted[i])
			continue
		}
		i++
		switch c := quoted[i]; c {
		case '/':
			to = append(to, '/')
		case 'u':
			r := hex4(quoted[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && len(quoted)-i > 6 && quoted[i+1] == '\\' && quoted[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(quoted[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			to = appendRune(to, r)
		default:
			to = append(to, '\\', c)
		}
	}
	return append(to, '"')
}

func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}

const hexDigits = "0123456789abcdef"

func appendRune(to []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(to, '\\', byte(r))
	case r == '\n':
		return append(to, `\n`...)
	case r == '\r':
		return append(to, `\r`...)
	case r == '\t':
		return append(to, `\t`...)
	case r == '\b':
		return append(to, `\b`...)
	case r == '\f':
		return append(to, `\f`...)
	case r < 0x20 || utf16.IsSurrogate(r):
		return append(to, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	default:
		return utf8.AppendRune(to, r)
	}
}

// jsonText is a text as JSON. What is not UTF-8 in it becomes a replacement character.
func jsonText(s string) json.RawMessage {
	to := append(make([]byte, 0, len(s)+2), '"')
	for _, r := range s {
		to = appendRune(to, r)
	}
	return append(to, '"')
}
