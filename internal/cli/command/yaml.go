package command

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
)

// YAML writes data as YAML: the same members in the same order as its JSON.
func YAML(w io.Writer, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	y := yamlWriter{json: json.NewDecoder(bytes.NewReader(text))}
	y.json.UseNumber()
	if err := y.value(0, false); err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.TrimPrefix(y.out.String(), "\n")+"\n")
	return err
}

// yamlWriter turns JSON into the block style of YAML. Texts keep the quotes of JSON, which YAML
// reads too.
type yamlWriter struct {
	json *json.Decoder
	out  strings.Builder
}

// value writes the next value behind what introduces it, at this depth. The first member of an
// object in a list shares the line of its dash.
func (y *yamlWriter) value(depth int, inList bool) error {
	token, err := y.json.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	switch {
	case !nested:
		data, err := json.Marshal(token)
		y.out.WriteString(" " + string(data))
		return err
	case !y.json.More():
		y.out.WriteString(map[json.Delim]string{'{': " {}", '[': " []"}[open])
	}
	for first := true; y.json.More(); first = false {
		if first && inList {
			y.out.WriteString(" ")
		} else {
			y.out.WriteString("\n" + strings.Repeat("  ", depth))
		}
		if open == '[' {
			y.out.WriteString("-")
		} else {
			name, err := y.json.Token()
			if err != nil {
				return err
			}
			y.out.WriteString(yamlName(name) + ":")
		}
		if err := y.value(depth+1, open == '['); err != nil {
			return err
		}
	}
	_, err = y.json.Token()
	return err
}

// yamlName returns the name of a member; one that YAML could read as something else is quoted.
func yamlName(name json.Token) string {
	text, _ := name.(string) // JSON has no other names
	special := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	odd := strings.IndexFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	if text == "" || odd >= 0 || slices.Contains(special, text) {
		return strconv.Quote(text)
	}
	return text
}
