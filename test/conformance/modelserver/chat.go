package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is the OpenAI Chat Completions API.
type chat struct{}

func (chat) parse(body []byte) (*conversation, error) {
	var req struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, tools: map[string]tool{}}
	for _, m := range req.Messages {
		switch m.Role {
		case "assistant":
			c.turns++
		case "user":
			c.heard = append(c.heard, m.Content...)
		}
	}
	for _, t := range req.Tools {
		c.tools[t.Function.Name] = tool{name: t.Function.Name}
	}
	return c, nil
}

func (chat) answer(w http.ResponseWriter, c *conversation, text string, made *call, hold func() error) error {
	message, finish := object{"role": "assistant", "content": text}, "stop"
	if made != nil {
		input, err := json.Marshal(made.input)
		if err != nil {
			return fmt.Errorf("encode the arguments of %s: %w", made.name, err)
		}
		message["tool_calls"], finish = []object{{
			"index": 0, "id": fmt.Sprintf("call_%d", c.turns), "type": "function",
			"function": object{"name": made.name, "arguments": string(input)},
		}}, "tool_calls"
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	if !c.stream {
		if err := hold(); err != nil {
			return err
		}
		reply(w, http.StatusOK, object{
			"id": "chat", "object": "chat.completion", "model": c.model, "usage": usage,
			"choices": []object{{"index": 0, "message": message, "finish_reason": finish}},
		})
		return nil
	}
	e := newEvents(w)
	chunk := func(delta object, finish any) object {
		return object{
			"id": "chat", "object": "chat.completion.chunk", "model": c.model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	e.data(chunk(object{"role": "assistant", "content": ""}, nil))
	if err := hold(); err != nil {
		return err
	}
	e.data(chunk(message, nil))
	if c.cut {
		return e.err
	}
	last := chunk(object{}, finish)
	last["usage"] = usage
	e.data(last)
	if e.err == nil {
		_, e.err = fmt.Fprint(w, "data: [DONE]\n\n")
	}
	return e.err
}

// data sends an event without a kind.
func (e *events) data(fields object) {
	if e.err != nil {
		return
	}
	data, err := json.Marshal(fields)
	if err == nil {
		_, err = fmt.Fprintf(e.w, "data: %s\n\n", data)
	}
	if err == nil {
		err = http.NewResponseController(e.w).Flush()
	}
	e.err = err
}
