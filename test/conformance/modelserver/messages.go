package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// messages is the Anthropic Messages API.
type messages struct{}

func (messages) parse(body []byte) (*conversation, error) {
	var req struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		OutputConfig struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, tools: map[string]tool{}, format: req.OutputConfig.Format.Schema}
	for _, m := range req.Messages {
		switch m.Role {
		case "assistant":
			c.turns++
		case "user":
			c.heard = append(c.heard, m.Content...)
		}
	}
	for _, t := range req.Tools {
		c.tools[t.Name] = tool{name: t.Name}
	}
	return c, nil
}

func (messages) answer(w http.ResponseWriter, c *conversation, text string, made *call, hold func() error) error {
	blocks, stop := []object{}, "end_turn"
	if text != "" {
		blocks = append(blocks, object{"type": "text", "text": text})
	}
	if made != nil {
		blocks = append(blocks, object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", c.turns), "name": made.name, "input": made.input})
		stop = "tool_use"
	}
	message := object{
		"id": fmt.Sprintf("msg_%d", c.turns), "type": "message", "role": "assistant", "model": c.model, "content": blocks,
		"stop_reason": stop, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}
	whole := object{"output_tokens": max(c.output, 1)}
	if !c.stream {
		message["usage"] = object{"input_tokens": 1, "output_tokens": max(c.output, 1)}
		if err := hold(); err != nil {
			return err
		}
		reply(w, http.StatusOK, message)
		return nil
	}
	e := newEvents(w)
	message["content"], message["stop_reason"] = []object{}, nil
	e.send("message_start", object{"message": message})
	if err := hold(); err != nil {
		return err
	}
	for i, block := range blocks {
		delta := object{"type": "text_delta", "text": text}
		empty := object{"type": "text", "text": ""}
		if block["type"] == "tool_use" {
			input, err := json.Marshal(made.input)
			if err != nil {
				return err
			}
			delta = object{"type": "input_json_delta", "partial_json": string(input)}
			empty = object{"type": "tool_use", "id": block["id"], "name": made.name, "input": object{}}
		}
		e.send("content_block_start", object{"index": i, "content_block": empty})
		e.send("content_block_delta", object{"index": i, "delta": delta})
		e.send("content_block_stop", object{"index": i})
	}
	e.send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": whole})
	e.send("message_stop", object{})
	return e.err
}

// content holds the texts of a message, which both APIs write as one string or as a list of parts.
type content []string

// UnmarshalJSON reads the texts and skips everything else, such as images and the results of tools.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{text}
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Text != "" {
			*c = append(*c, p.Text)
		}
	}
	return nil
}
