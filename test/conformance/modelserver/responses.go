package modelserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// responses is the OpenAI Responses API.
type responses struct{}

// toolSearch is the name of the tool that searches for tools; the API has a type for it instead.
const toolSearch = "tool_search"

// offer is a tool as a client offers it, or a namespace of tools.
type offer struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (o offer) add(c *conversation) {
	switch o.Type {
	case "namespace":
		for _, inner := range o.Tools {
			c.tools[o.Name+"."+inner.Name] = tool{name: inner.Name, space: o.Name}
		}
	case toolSearch:
		c.tools[toolSearch] = tool{name: toolSearch}
	default:
		c.tools[o.Name] = tool{name: o.Name, custom: o.Type == "custom"}
	}
}

func (responses) parse(body []byte) (*conversation, error) {
	var req struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Input  []struct {
			Type    string  `json:"type"`
			Role    string  `json:"role"`
			Content content `json:"content"`
			Tools   []offer `json:"tools"` // the result of a search
		} `json:"input"`
		Tools []offer `json:"tools"`
		Text  struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, tools: map[string]tool{}, format: req.Text.Format.Schema}
	// The API splits one turn of the model into several items: its text, its reasoning, each call.
	speaking := false
	for _, item := range req.Input {
		for _, t := range item.Tools {
			t.add(c)
		}
		output := strings.HasSuffix(item.Type, "_output")
		switch {
		case item.Role == "user":
			c.heard = append(c.heard, item.Content...)
			speaking = false
		case item.Role != "" && item.Role != "assistant", output:
			speaking = false
		case !speaking:
			speaking = true
			c.turns++
		}
	}
	for _, t := range req.Tools {
		t.add(c)
	}
	return c, nil
}

func (responses) answer(w http.ResponseWriter, c *conversation, text string, made *call, hold func() error) error {
	items := []object{}
	if text != "" {
		items = append(items, object{
			"type": "message", "id": fmt.Sprintf("msg_%d", c.turns), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": text, "annotations": []object{}}},
		})
	}
	if made != nil {
		item, err := made.item(c.turns)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	response := object{
		"id": fmt.Sprintf("resp_%d", c.turns), "object": "response", "status": "completed", "model": c.model, "output": items,
		"usage": object{
			"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 1, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2,
		},
	}
	if !c.stream {
		if err := hold(); err != nil {
			return err
		}
		reply(w, http.StatusOK, response)
		return nil
	}
	e := newEvents(w)
	e.send("response.created", object{"response": object{"id": response["id"], "object": "response", "status": "in_progress", "output": []object{}}})
	if err := hold(); err != nil {
		return err
	}
	for i, item := range items {
		begun := maps.Clone(item)
		begun["status"] = "in_progress"
		if item["type"] == "message" {
			begun["content"] = []object{}
		}
		e.send("response.output_item.added", object{"output_index": i, "item": begun})
		if item["type"] == "message" {
			e.send("response.output_text.delta", object{"item_id": item["id"], "output_index": i, "content_index": 0, "delta": text})
		}
		e.send("response.output_item.done", object{"output_index": i, "item": item})
	}
	e.send("response.completed", object{"response": response})
	return e.err
}

// item returns a call in the API's form.
func (c *call) item(turn int) (object, error) {
	id := fmt.Sprintf("call_%d", turn)
	item := object{"id": "item_" + id, "call_id": id, "name": c.name, "status": "completed"}
	if c.name == toolSearch {
		return object{"id": "item_" + id, "call_id": id, "type": "tool_search_call", "execution": "client", "status": "completed", "arguments": c.input}, nil
	}
	if c.space != "" {
		item["namespace"] = c.space
	}
	if c.custom {
		item["type"], item["input"] = "custom_tool_call", c.input
		return item, nil
	}
	arguments, err := json.Marshal(c.input)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", c.name, err)
	}
	item["type"], item["arguments"] = "function_call", string(arguments)
	return item, nil
}
