package command

import (
	"encoding/json"
	"io"

	"go.yaml.in/yaml/v4"
)

// YAML writes data as YAML, with the same members in the same order as its JSON.
func YAML(w io.Writer, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil { // JSON is YAML, and a node keeps the order
		return err
	}
	blocks(&document)
	encoder, err := yaml.NewDumper(w, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return err
	}
	if err := encoder.Dump(&document); err != nil {
		return err
	}
	return encoder.Close()
}

// blocks removes the brackets of JSON and the quotes around names. Other texts keep their quotes:
// readers interpret a plain text such as yes differently.
func blocks(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	for i, child := range n.Content {
		blocks(child)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			child.Style = 0
		}
	}
}
