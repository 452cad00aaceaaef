package api

import "agency"

// SetRunRequest changes what a living agent uses.
type SetRunRequest struct {
	Run     string         `json:"run"`     // its name, handle or id
	Setting agency.Setting `json:"setting"` // what is changed
	Value   string         `json:"value"`   // by the agent's own name; run.show has what it offers
}

// SetRunResponse is the outcome of a change.
type SetRunResponse struct {
	RunID     agency.RunID   `json:"run_id"`    // the id of the run
	Setting   agency.Setting `json:"setting"`   // what is changed
	Value     string         `json:"value"`     // what the agent uses, by its own word; with confirmed false, as it was known before
	Confirmed bool           `json:"confirmed"` // the agent acknowledged it
}

// UnsendRequest takes back a message that an agent has, and has not begun with.
type UnsendRequest struct {
	Run string `json:"run"`          // its name, handle or id
	ID  string `json:"id,omitempty"` // of the message, or the beginning of its id; run.show has them. It may be left out when there is one
}

// UnsendResponse is the outcome of taking a message back.
type UnsendResponse struct {
	RunID     agency.RunID         `json:"run_id"`    // the id of the run
	Message   agency.QueuedMessage `json:"message"`   // which one
	Confirmed bool                 `json:"confirmed"` // the agent acknowledged that it does not begin with it
}
