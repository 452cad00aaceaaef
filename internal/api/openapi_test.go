package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"agency"
	"agency/docs"
	"agency/internal/api"
)

const openAPI = "../../docs/openapi.json"

// object is a JSON object whose keys are written in alphabetical order.
type object = map[string]any

// docs/openapi.json, which agency api prints, is made from the table of operations and the comments
// of the types.
func TestDocsOpenAPI(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(openAPIDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := layOut(&made, data, 0); err != nil {
		t.Fatal(err)
	}
	made.WriteByte('\n')
	if *update {
		if err := os.WriteFile(openAPI, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(docs.OpenAPI, made.String()); diff != "" {
		t.Errorf("docs/openapi.json is stale; go test ./internal/api -run Docs -update (-document +code):\n%s", diff)
	}
}

// Each example of the table matches the schema of its request, and so does the client's encoding of
// it.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(docs.OpenAPI))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	for _, op := range api.Operations() {
		schema, err := compiler.Compile("openapi.json#/components/schemas/" + op.Request.Name())
		if err != nil {
			t.Fatal(err)
		}
		req, err := op.NewRequest([]byte(op.Example))
		if err != nil {
			t.Errorf("the example of %s: %v", op.Name, err)
			continue
		}
		sent, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{op.Example, string(sent)} {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				t.Errorf("%s does not take %s: %v", op.Name, text, err)
			}
		}
	}
}

func openAPIDocument(t *testing.T) object {
	t.Helper()
	paths := object{}
	for _, op := range api.Operations() {
		paths["/v1/"+op.Name] = object{"post": operationObject(&op)}
	}
	from := readSource(t)
	for _, s := range api.Streams() {
		paths[s.Path] = object{"get": streamObject(t, from, &s)}
	}
	schemas := object{"Failure": object{
		"description": "The answer of an operation that failed.", "type": "object", "required": []string{"ok", "schema_version", "error"},
		"properties": object{"ok": object{"const": false}, "schema_version": object{"const": api.SchemaVersion}, "error": reference("Problem")},
	}}
	for name, schema := range from.components(t) {
		schemas[name] = schema
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "agency", "version": strconv.Itoa(api.SchemaVersion), "license": object{"name": "MIT", "identifier": "MIT"},
			"description": "The operations of agency's daemon, which listens on a unix socket of the user: ~/.agency/agencyd.sock, or AGENCY_SOCKET. " +
				"agency api CALL runs one. docs/json.md describes them for readers, and docs/policy.md lists which a run may call. " +
				"x-kind: acts changes something, so never send it twice; reads changes nothing more when it is sent twice, and answers soon; " +
				"waits changes nothing and may take long. x-tool is the operation's name among the tools of agency mcp.",
		},
		"servers": []object{{"url": "http://agency", "description": "Any host name, over the unix socket."}},
		"paths":   paths,
		"components": object{"schemas": schemas, "responses": object{"Failure": object{
			"description": "An error that every operation can give: " + list(api.CommonErrors()),
			"content":     object{"application/json": object{"schema": reference("Failure")}},
		}}},
	}
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func operationObject(op *api.Description) object {
	group, _, _ := strings.Cut(op.Name, ".")
	made := object{
		"operationId": op.Name, "tags": []string{group}, "summary": op.Help, "x-kind": op.Kind.String(),
		"requestBody": object{"required": true, "content": object{"application/json": object{
			"schema": reference(op.Request.Name()), "example": json.RawMessage(op.Example),
		}}},
	}
	if op.Tool != nil {
		made["x-tool"] = op.Tool.Name
	}
	responses := object{
		"200": object{"description": "It is done.", "content": object{"application/json": object{"schema": object{
			"type": "object", "required": []string{"ok", "schema_version", "data"},
			"properties": object{"ok": object{"const": true}, "schema_version": object{"const": api.SchemaVersion}, "data": reference(op.Response.Name())},
		}}}},
		"default": object{"$ref": "#/components/responses/Failure"},
	}
	byStatus := map[int][]agency.Code{}
	for _, code := range op.Errors {
		byStatus[code.HTTPStatus()] = append(byStatus[code.HTTPStatus()], code)
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		responses[strconv.Itoa(status)] = object{
			"$ref": "#/components/responses/Failure", "description": http.StatusText(status) + ": " + list(byStatus[status]),
		}
	}
	made["responses"] = responses
	return made
}

// streamObject describes a stream. Its answer has no envelope, so the schema is that of one item.
func streamObject(t *testing.T, from *source, s *api.Stream) object {
	t.Helper()
	group, _, _ := strings.Cut(streamName(s), ".")
	query, err := from.schemaOf(s.Query, true)
	if err != nil {
		t.Fatal(err)
	}
	parameters := []object{}
	for _, key := range query.PropertyOrder {
		property := query.Properties[key]
		description := property.Description
		property.Description = ""
		if property.Types != nil { // a query has no null
			property.Type, property.Types = property.Types[1], nil
		}
		parameters = append(parameters, object{
			"name": key, "in": "query", "required": slices.Contains(query.Required, key), "description": description, "schema": property,
		})
	}
	answer := object{"description": "It is done.", "content": object{"application/json": object{}}}
	if s.Media != "" {
		content := object{}
		if s.Item != nil {
			content["schema"] = reference(s.Item.Name())
		}
		answer = object{"description": "The stream, without an envelope.", "content": object{s.Media: content}}
	}
	status := "200"
	if s.Upgrade != "" {
		status = "101"
		parameters = append(parameters, object{"name": "Upgrade", "in": "header", "required": true, "schema": object{"const": s.Upgrade}})
	}
	return object{
		"operationId": streamName(s), "tags": []string{group}, "summary": s.Help, "parameters": parameters,
		"x-kind":    map[bool]string{false: api.Reads.String(), true: api.Acts.String()}[s.Upgrade != ""],
		"responses": object{status: answer, "default": object{"$ref": "#/components/responses/Failure"}},
	}
}

// list joins codes with commas.
func list(codes []agency.Code) string {
	names := make([]string, 0, len(codes))
	for _, code := range codes {
		names = append(names, string(code))
	}
	return strings.Join(names, ", ")
}

// layOut writes JSON for readers: what fits on a line is on one, everything else has a line for
// each key or element.
func layOut(b *bytes.Buffer, data json.RawMessage, depth int) error {
	const columns = 120
	line := func(depth int) { b.WriteString("\n" + strings.Repeat("\t", depth)) }
	flat := data[0] == '[' && !bytes.ContainsAny(data, "{") || data[0] != '[' && data[0] != '{'
	if flat || len(data) <= columns && depth > 2 {
		_, err := b.Write(data)
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	b.WriteString(open.(json.Delim).String())
	for first := true; dec.More(); first = false {
		if !first {
			b.WriteByte(',')
		}
		line(depth + 1)
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			b.WriteString(strconv.Quote(key.(string)) + ": ")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := layOut(b, value, depth+1); err != nil {
			return err
		}
	}
	line(depth)
	b.WriteByte(data[len(data)-1])
	return nil
}
