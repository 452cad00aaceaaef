package modelserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// generate is the Gemini API. Its paths end in the model and the call, MODEL:streamGenerateContent.
type generate struct {
	model  string
	stream bool
}

// generate answers all calls of the Gemini API.
func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	model, call, _ := strings.Cut(r.PathValue("call"), ":")
	switch call {
	case "generateContent", "streamGenerateContent":
		s.converse(generate{model: model, stream: call == "streamGenerateContent"})(w, r)
	case "countTokens":
		body, _ := io.ReadAll(r.Body)
		s.record(Request{Method: r.Method, Path: r.URL.Path, Side: true})
		reply(w, http.StatusOK, object{"totalTokens": 1 + len(body)/4})
	default:
		s.unknown(w, r)
	}
}

func (g generate) parse(body []byte) (*conversation, error) {
	var req struct {
		Contents []struct {
			Role  string  `json:"role"`
			Parts content `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Schema     json.RawMessage `json:"responseSchema"`
			JSONSchema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: g.model, stream: g.stream, tools: map[string]tool{}, format: req.Config.JSONSchema}
	if c.format == nil {
		c.format = req.Config.Schema
	}
	for _, message := range req.Contents {
		if message.Role == "model" {
			c.turns++
		} else {
			c.heard = append(c.heard, message.Parts...)
		}
	}
	for _, list := range req.Tools {
		for _, f := range list.Functions {
			c.tools[f.Name] = tool{name: f.Name}
		}
	}
	return c, nil
}

func (generate) answer(w http.ResponseWriter, c *conversation, text string, made *call, hold func() error) error {
	parts := []object{}
	if text != "" {
		parts = append(parts, object{"text": text})
	}
	if made != nil {
		parts = append(parts, object{"functionCall": object{"name": made.name, "args": made.input}})
	}
	answer := func(parts []object, end object) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		whole := object{"candidates": []object{candidate}, "modelVersion": c.model}
		for key, value := range end {
			if key == "finishReason" {
				candidate[key] = value
			} else {
				whole[key] = value
			}
		}
		return whole
	}
	end := object{
		"finishReason":  "STOP",
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if !c.stream {
		if err := hold(); err != nil {
			return err
		}
		reply(w, http.StatusOK, answer(parts, end))
		return nil
	}
	e := newEvents(w)
	e.data(answer([]object{{"text": ""}}, nil))
	if err := hold(); err != nil {
		return err
	}
	e.data(answer(parts, end))
	return e.err
}
