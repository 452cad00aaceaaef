package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"agency"
)

// Encode writes v as indented JSON with a final newline; <, > and & stay as they are, and what acts on a terminal or hides from a
// reader is escaped.
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

// escapeInvisible writes the characters of a JSON text that agency.Shows does not let through as \uXXXX: control characters above
// ASCII, which encoding/json leaves as they are, and those that change the direction of writing or cannot be seen. The text means
// the same as before.
func escapeInvisible(text []byte) []byte {
	at := bytes.IndexFunc(text, func(r rune) bool { return r >= 0x7f })
	if at < 0 {
		return text
	}
	escaped := append(make([]byte, 0, len(text)+64), text[:at]...)
	for last := rune(0); at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r < 0x7f || agency.Shows(last, r):
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
