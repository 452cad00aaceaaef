package mcp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"agency"
	"agency/internal/api"
)

// reportWord is a status that an agent reports about itself.
type reportWord string

// closedSets returns the schemas of the types that allow only certain values.
func closedSets() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[agency.Label]():        oneOf(agency.Labels()),
		reflect.TypeFor[agency.AgentStatus]():  oneOf(agency.AgentStatuses()),
		reflect.TypeFor[agency.OnFailure]():    oneOf([]agency.OnFailure{agency.StopOnFailure, agency.ContinueOnFailure, agency.AskOnFailure}),
		reflect.TypeFor[agency.LandBy]():       oneOf([]agency.LandBy{agency.LandByQueue, agency.LandByNone}),
		reflect.TypeFor[agency.Decision]():     oneOf([]agency.Decision{agency.Allow, agency.Deny}),
		reflect.TypeFor[api.SessionAction]():   oneOf([]api.SessionAction{api.ActionStart, api.ActionComplete, api.ActionFail, api.ActionCancel}),
		reflect.TypeFor[agency.Mode]():         oneOf(agency.Modes()),
		reflect.TypeFor[agency.SandboxLevel](): oneOf(agency.SandboxLevels()),
		reflect.TypeFor[agency.Network]():      oneOf(agency.Networks()),
		reflect.TypeFor[reportWord]():          oneOf(reportWords()),
	}
}

// schemaOf returns the schema of the arguments of type t. A type with a closed set of values lists
// them. A text with a type of its own that is not in closedSets is an error, so that no set is
// forgotten.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	types := closedSets()
	for _, f := range reflect.VisibleFields(t) {
		typ := f.Type
		if typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.String && typ != reflect.TypeFor[string]() && types[typ] == nil {
			return nil, fmt.Errorf("the values of %s, which %s of %s is, are in no schema", typ, f.Name, t)
		}
	}
	types[reflect.TypeFor[agency.Resources]()] = &jsonschema.Schema{Type: "object"} // the description names the keys in fewer words
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, err
	}
	schema.AdditionalProperties = nil // the decoder refuses them anyway, and a model pays for every word
	for _, property := range schema.Properties {
		// Lists may be omitted. A null instead of a list only confuses the models' own schema
		// dialects.
		if len(property.Types) > 0 {
			property.Type, property.Types = property.Types[len(property.Types)-1], nil
		}
	}
	return schema, nil
}

func oneOf[T ~string](values []T) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		schema.Enum = append(schema.Enum, string(v))
	}
	return schema
}

// reportWords returns the statuses that an agent can report.
func reportWords() []reportWord {
	words := []reportWord{}
	for _, w := range agency.Words() {
		words = append(words, reportWord(w))
	}
	return append(words, reportWord(agency.ReportsError), reportWord(agency.ReportsComplete), reportWord(agency.ReportsHelp))
}

// only keeps the arguments that a model gives.
func only(schema *jsonschema.Schema, required, optional []string) {
	hidden := func(key string) bool { return !slices.Contains(required, key) && !slices.Contains(optional, key) }
	schema.PropertyOrder = slices.DeleteFunc(schema.PropertyOrder, hidden)
	maps.DeleteFunc(schema.Properties, func(key string, _ *jsonschema.Schema) bool { return hidden(key) })
	schema.Required = required
}
