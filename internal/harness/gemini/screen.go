package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// The texts by which Gemini's dialogs are recognised.
const (
	allow  = "Allow once"
	refuse = "No, suggest changes (esc)"
	asking = "Answer Questions"
	own    = "Enter a custom value"
)

// sure is the confidence that a dialog asks what was read.
const sure = 0.8

// readScreen reads its terminal. Gemini's title shows that it asks, but only the dialog shows what,
// so the dialog is read in full: its evidence has an id, which stays the same for the same request.
func readScreen(lines []string) []agency.Evidence {
	if d := dialog(lines); d != nil {
		return []agency.Evidence{ask(d)}
	}
	return patternsOn(lines)
}

// dialog reads the dialog at the bottom of a terminal; nil when there is none that is fully
// understood.
func dialog(lines []string) *agent.Dialog {
	inside := lastBox(lines)
	first := -1
	for i, line := range inside {
		if o, ok := option(line); ok && o.Key == "1" {
			first = i
		}
	}
	if first < 1 {
		return nil
	}
	d := &agent.Dialog{Lines: inside[:first], Options: agent.ParseOptions(inside[first:], option)}
	switch head := strings.TrimSpace(inside[0]); {
	case strings.HasPrefix(head, "? "):
		if !d.Offers(allow) || !d.Offers(refuse) {
			return nil
		}
		d.Kind = agency.AsksPermission
	case head == asking:
		// A form with several questions or choices ends in another text.
		end := strings.TrimSpace(inside[len(inside)-1])
		if end != "Enter to select · ↑/↓ to navigate · Esc to cancel" && end != "Enter to submit · Esc to cancel" {
			return nil
		}
		d.Kind = agency.AsksQuestion
	default:
		return nil
	}
	return d
}

// option reads a choice; a dot before it is the cursor.
func option(line string) (agent.Option, bool) {
	text, chosen := strings.CutPrefix(strings.TrimSpace(line), "● ")
	o, ok := agent.ParseOption(text)
	o.Chosen = chosen
	return o, ok
}

// lastBox returns the content of the last frame of a terminal, its head first, when no input box is
// below it.
func lastBox(lines []string) []string {
	end := len(lines) - 1
	for end >= 0 && !strings.HasPrefix(lines[end], "╰") {
		if text := strings.TrimSpace(lines[end]); strings.HasPrefix(text, ">") || strings.HasPrefix(text, "──") {
			return nil
		}
		end--
	}
	var inside []string
	for i := end - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "╭") {
			slices.Reverse(inside)
			return inside
		}
		line, framed := strings.CutPrefix(strings.TrimRight(lines[i], " "), "│")
		if !framed {
			return nil
		}
		if line = strings.TrimRight(strings.TrimSuffix(line, "│"), " "); line != "" || len(inside) > 0 {
			inside = append(inside, strings.TrimPrefix(line, " "))
		}
	}
	return nil // its head is not visible
}

// ask returns the evidence of the request in a dialog.
func ask(d *agent.Dialog) agency.Evidence {
	sum := sha256.Sum256([]byte(strings.Join(d.Lines, "\n")))
	e := agency.Evidence{
		Source: agency.FromScreen, Signal: agency.SignalAsked, Event: agency.EventComplete, Confidence: sure, ID: "screen-" + hex.EncodeToString(sum[:6]), Kind: d.Kind,
	}
	if d.Kind == agency.AsksQuestion {
		e.Text = strings.Join(strings.Fields(strings.Join(d.Lines[1:], " ")), " ")
		return e
	}
	tool, about, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(d.Lines[0]), "? "), " ")
	e.Tool, e.Text = tool, strings.TrimSpace(about)
	if slices.ContainsFunc(d.Lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "Allow execution of [") }) {
		if command := framed(d.Lines); command != "" {
			e.Text = command // the head holds the model's description of it
		}
	}
	return e
}

// framed returns the text in a frame inside a dialog.
func framed(lines []string) string {
	var text []string
	for _, line := range lines {
		if line, ok := strings.CutPrefix(line, "│ "); ok {
			text = append(text, strings.TrimRight(strings.TrimSuffix(line, "│"), " "))
		}
	}
	return strings.Join(text, "\n")
}

// answer answers Gemini's dialogs. A digit chooses at once; Escape refuses, and ends the turn with
// it.
func answer(d *agent.Dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return agent.Escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.Press(allow, "")
	}
	return d.Choose(reply.Text, own)
}
