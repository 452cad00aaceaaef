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

// Object is a JSON object whose members keep their order. Of two members with the same name the
// last value counts, at the position of the first.
type Object []Member

// Member is one member. Its name is the text between the quotes, as appendQuoted writes it; its
// value is as it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Get returns the value of a member; nil when there is none.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Set replaces the value of a member, or adds the member at the end.
func (o *Object) Set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member{name, value})
}

// inOrder returns the object with the members named in order first, in that order, and the others
// after them in their own.
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

// compact returns the object on one line.
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
		// The decoder's own result for a name loses lone halves of surrogate pairs.
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

// appendObject appends an object on several lines, its members one level deeper than indent.
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

// appendValue appends a valid JSON value as Python's json.dumps(indent=2, ensure_ascii=False)
// writes it, except that numbers stay as they were written.
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
			if next := bytes.TrimLeft(value[i+1:], " \t\n\r"); next[0] == c+2 { // in ASCII, the closing bracket is the opening one plus 2
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

// endOfString returns the index after the string that begins at start.
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

// appendQuoted appends a valid JSON string, with only the escapes that it needs. A lone half of a
// surrogate pair needs one: there is no other way to write it.
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

// jsonText returns a text as JSON. Bytes that are not UTF-8 become replacement characters.
func jsonText(s string) json.RawMessage {
	to := append(make([]byte, 0, len(s)+2), '"')
	for _, r := range s {
		to = appendRune(to, r)
	}
	return append(to, '"')
}
