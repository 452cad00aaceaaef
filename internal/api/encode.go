package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"agency/internal/plain"
)

// Encode writes v as indented JSON with a final newline. It leaves <, > and & as they are, and
// escapes characters that control a terminal or are invisible.
func Encode(w io.Writer, v any) error { return encodeTo(w, v, "  ") }

// EncodeLine is Encode on one line.
func EncodeLine(w io.Writer, v any) error { return encodeTo(w, v, "") }

func encodeTo(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeInvisible(text.Bytes()))
	return err
}

// escapeInvisible replaces the characters of a JSON text that plain.Shows rejects by \uXXXX:
// control characters above ASCII, which encoding/json leaves as they are, and characters that
// change the direction of writing or are invisible. The meaning of the text stays the same.
func escapeInvisible(text []byte) []byte {
	at := 0
	for at < len(text) && text[at] < 0x7f { // in an eighth of the time of bytes.IndexFunc
		at++
	}
	if at == len(text) {
		return text
	}
	escaped := append(make([]byte, 0, len(text)+64), text[:at]...)
	last := rune(0)
	if at > 0 {
		last = rune(text[at-1])
	}
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r < 0x7f || plain.Shows(last, r):
			escaped = append(escaped, text[at:at+size]...)
			last = r
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		at += size
	}
	return escaped
}

// indent appends JSON text to dst, indented as Encode does it. It does not check the text.
func indent(dst, text []byte) []byte {
	depth := 0
	line := func() {
		dst = append(dst, '\n')
		for range depth {
			dst = append(dst, ' ', ' ')
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text)-1)
			dst = append(dst, text[i:end+1]...)
			i = end
		case '{', '[':
			dst = append(dst, c)
			for i+1 < len(text) && text[i+1] <= ' ' {
				i++
			}
			if i+1 < len(text) && (text[i+1] == '}' || text[i+1] == ']') {
				i++
				dst = append(dst, text[i])
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			line()
		case ':':
			dst = append(dst, ':', ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
