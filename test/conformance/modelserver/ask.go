package modelserver

// command returns a shell command as Codex expects it, with the wish for a permission.
func (t Turn) command() object {
	command := object{"cmd": t.Shell}
	if t.Leave {
		command["sandbox_permissions"], command["justification"] = "require_escalated", "The scenario wants it"
	}
	return command
}

// question returns a question with two answers, for the tools that ask users.
func (t Turn) question() map[string]any {
	answers := []object{{"label": "Red", "description": "the first"}, {"label": "Blue", "description": "the second"}}
	return map[string]any{
		"AskUserQuestion":    object{"questions": []object{{"question": t.Ask, "header": "Scripted", "options": answers, "multiSelect": false}}},
		"request_user_input": object{"questions": []object{{"id": "scripted", "question": t.Ask, "header": "Scripted", "options": answers}}},

		"question": object{"questions": []object{{"question": t.Ask, "header": "Scripted", "options": answers}}},
		"ask_user": object{ // of Gemini and of Copilot
			"questions": []object{{"question": t.Ask, "header": "Scripted", "type": "choice", "options": answers}},
			"message":   t.Ask,
			"requestedSchema": object{"type": "object", "required": []string{"answer"}, "properties": object{
				"answer": object{"type": "string", "enum": []string{"Red", "Blue"}},
			}},
		},
	}
}
