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

// escapeInvisible replaces the characters of a JSON text that agency.Shows rejects by \uXXXX:
// control characters above ASCII, which encoding/json leaves as they are, and characters that
// change the direction of writing or are invisible. The meaning of the text stays the same.
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
