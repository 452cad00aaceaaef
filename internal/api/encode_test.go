package api_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"agency/internal/api"
)

// Encoding keeps the meaning of a JSON text, and nothing in it controls a terminal.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"", "plain", "\x1b[31m", "\u009b31m", "\u202eevil\u2066", "\x7f\u0085", "tag \U000e0041", "👩\u200d💻 né", "\u200b", "a\xffb"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, encode := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return api.Encode(b, api.Success([]string{text})) },
			func(b *bytes.Buffer) error { return api.EncodeLine(b, api.Success(json.RawMessage(quoted(text)))) },
		} {
			var out bytes.Buffer
			if err := encode(&out); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%q holds %U", out.String(), r)
				}
			}
			var back api.Envelope
			if err := json.Unmarshal(out.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			got := back.Data
			if list, ok := got.([]any); ok {
				got = list[0]
			}
			var want string
			if err := json.Unmarshal(quoted(text), &want); err != nil || got != want {
				t.Errorf("%q came back as %q", want, got)
			}
		}
	})
}

// quoted returns a text as encoding/json writes it.
func quoted(text string) []byte {
	data, _ := json.Marshal(text)
	return data
}
