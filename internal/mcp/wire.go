package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
	"agency/internal/plain"
)

// readArguments decodes the arguments of a call strictly into in, a pointer, so that a model learns
// of a misspelled one. in can have more keys than the schema; these are not for models.
func readArguments(data json.RawMessage, schema *jsonschema.Schema, in any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		data = json.RawMessage("{}")
	}
	if err := api.Decode(data, in); err != nil {
		return agency.Errorf(agency.CodeUsage, "the arguments are not valid: %w", err)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return agency.Errorf(agency.CodeUsage, "the arguments are not valid: %w", err)
	}
	for name := range given {
		if schema.Properties[name] == nil {
			return agency.Errorf(agency.CodeUsage, "the arguments are not valid: unknown key %q; known are %s", name, strings.Join(schema.PropertyOrder, ", "))
		}
	}
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			return agency.Errorf(agency.CodeUsage, "the argument %q is missing", name)
		}
	}
	return nil
}

// success returns the answer of a tool.
func success(data any) (*sdk.CallToolResult, error) {
	text, err := encode(data)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}

// failure returns the answer of a failed tool: an error that the model can read and act on, not one
// of the protocol. hintFor words its hint for the model.
func failure(err error, hintFor func(string) string) *sdk.CallToolResult {
	failure := api.Failure(err).Error
	failure.Hint = hintFor(failure.Hint)
	text, encodeErr := encode(map[string]any{"error": failure})
	if encodeErr != nil {
		text = []byte(`{"error":{"code":"E_INTERNAL"}}`)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: true}
}

// encode returns JSON without characters that control a terminal or are invisible to users: most
// texts come from other agents, and reach a model or a screen.
func encode(data any) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc = json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for rest := bytes.TrimRight(raw.Bytes(), "\n"); len(rest) > 0; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			out.Write(rest)
			break
		}
		out.Write(rest[:begin])
		end := begin + 1
		for rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		var text string
		if err := json.Unmarshal(rest[begin:end+1], &text); err != nil {
			return nil, err
		}
		if err := enc.Encode(plain.Visible(text)); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - 1) // the newline that an encoder adds
		rest = rest[end+1:]
	}
	return out.Bytes(), nil
}
