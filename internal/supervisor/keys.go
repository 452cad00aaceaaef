package supervisor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"agency"
	"agency/internal/plain"
)

// KeysRequest is what a client types into the terminal of a run: a text, and then keys.
type KeysRequest struct {
	Ref      string
	Attempt  int    // the keys are for it alone
	PromptID string // of the request that is open; empty is none
	Text     string
	Keys     []string // names, such as enter, up or ctrl-c
}

// Press types a text and keys into the terminal of an agent, and presses no Enter of its own. The
// error is E_INVALID_STATE for another attempt, or while the agent waits for something other than
// PromptID; E_INPUT_REFUSED while the terminal shows a dialog.
func (in *Input) Press(ctx context.Context, req KeysRequest) (*agency.Run, error) {
	keys, err := keystrokes(req.Text, req.Keys)
	if err != nil {
		return nil, err
	}
	r, err := in.store.Resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	if r.Attempt.Mode == agency.ModeProtocol {
		return nil, agency.Errorf(agency.CodeInputRefused, "agency types nothing into %s, since it speaks the protocol of the agent", r.Ref()).
			WithHint("agency send %s TEXT, or agency answer %s", r.Ref(), r.Ref())
	}
	release, err := in.locks.Lock(ctx, string(r.ID))
	if err != nil {
		return nil, err
	}
	defer release()
	in.observer.Look(ctx, r.ID) // only the screen shows what some agents ask
	if r, err = in.runForKeys(ctx, r.ID, &req); err != nil {
		return nil, err
	}
	err = in.typeKeys(ctx, r, keys, func(ctx context.Context) error {
		if _, err := in.runForKeys(ctx, r.ID, &req); err != nil {
			return err
		}
		_, err := in.clearSight(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), inputTimeout) // the keys are pressed already
	defer cancel()
	_, err = in.store.fact(recording, r.ID, func(*agency.Run) ([]agency.EventDraft, error) {
		return []agency.EventDraft{{Type: agency.InputDelivered, Data: map[string]any{"bytes": len(keys), "keys": true}}}, nil
	})
	return r, err
}

// runForKeys returns a run as it is now, if the keys of a request are still for it: for its newest
// attempt, and for what its agent asks.
func (in *Input) runForKeys(ctx context.Context, id agency.RunID, req *KeysRequest) (*agency.Run, error) {
	r, err := in.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	now := in.observer.Derive(r).PromptID()
	switch {
	case r.RemovedAt != nil || r.Attempt.State != agency.Running:
		return nil, agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so it would not read the keys", r.Ref()).WithHint("agency show %s", r.Ref())
	case r.Attempt.Number != req.Attempt:
		return nil, agency.Errorf(agency.CodeInvalidState, "the keys are for attempt %d of %s, and it is at attempt %d", req.Attempt, r.Ref(), r.Attempt.Number).
			WithHint("look at it first: agency attach %s", r.Ref())
	case now != req.PromptID && req.PromptID != "":
		return nil, promptChanged(r, req.PromptID, now)
	case now != req.PromptID:
		return nil, agency.Errorf(agency.CodeInvalidState, "%s waits for an answer, and keys could give one", r.Ref()).WithDetail("prompt_id", now).
			WithHint("agency answer %s allow|deny|TEXT", r.Ref())
	default:
		return r, nil
	}
}

// keyCodes returns what a terminal sends for a key.
func keyCodes() map[string]string {
	codes := map[string]string{
		"enter": "\r", "tab": "\t", "backtab": "\x1b[Z", "escape": "\x1b", "space": " ", "backspace": "\x7f", "delete": "\x1b[3~",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "page-up": "\x1b[5~", "page-down": "\x1b[6~",
	}
	for c := 'a'; c <= 'z'; c++ {
		codes["ctrl-"+string(c)] = string(c - 'a' + 1)
	}
	return codes
}

// keystrokes returns what a terminal sends for a text and keys. A text has no control characters,
// which would be keys.
func keystrokes(text string, keys []string) (string, error) {
	if text == "" && len(keys) == 0 {
		return "", agency.Errorf(agency.CodeUsage, "there is nothing to type").WithHint("give a text, keys, or both")
	}
	if at := strings.IndexFunc(text, unicode.IsControl); at >= 0 {
		return "", agency.Errorf(agency.CodeUsage, "the text holds the control character %q", text[at]).WithHint("name keys in keys, such as enter")
	}
	codes := keyCodes()
	for _, key := range keys {
		code, ok := codes[key]
		if !ok {
			err := agency.Errorf(agency.CodeUsage, "there is no key %q", plain.OneLine(key))
			if near := plain.Nearest(key, slices.Sorted(maps.Keys(codes))); near != "" {
				return "", err.WithHint("did you mean %s?", near)
			}
			return "", err.WithHint("such as enter, escape, tab, up, page-down or ctrl-c")
		}
		text += code
	}
	return text, nil
}
