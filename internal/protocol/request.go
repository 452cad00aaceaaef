package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Limits of what is remembered of requests.
const (
	mostOpen   = 256
	mostClosed = 256
	mostID     = 512 // bytes of the id of a request that agency refuses, or of a step
)

// requests are what the agent asked in a conversation.
type requests struct {
	Open    []openRequest
	Closed  []closedRequest  // the newest
	Asked   int              // how many requests there were
	Foreign []foreignRequest // requests that agency does not know, and has not refused yet
	Unknown int              // how many requests agency did not know
}

// openRequest is a request for whose answer the agent waits.
type openRequest struct {
	Request

	Nth int     // its number in the conversation, for people
	By  *Intent // the answer that was written, and that the agent has not taken yet
}

// closedRequest is a request for whose answer the agent no longer waits.
type closedRequest struct {
	ID string
	By *Intent // the answer that the agent took; nil when the agent withdrew the request
}

// foreignRequest is a request that agency does not know.
type foreignRequest struct {
	ID, Name string
	Refusal  string // the id of the refusal
}

// addRequest adds an open request. It reports false for a request that is already open, and for one too many.
func (q *requests) addRequest(r *Request) bool {
	if q.openIndex(r.ID) >= 0 || len(q.Open) == mostOpen {
		return false
	}
	q.Closed = slices.DeleteFunc(q.Closed, func(c closedRequest) bool { return c.ID == r.ID }) // the agent uses the id again
	q.Asked++
	q.Open = append(q.Open, openRequest{Request: *r, Nth: q.Asked})
	return true
}

// closeRequest ends the open request that the program calls by this number. taken is set when the agent
// took an answer.
func (q *requests) closeRequest(number string, taken bool) (c closedRequest, ok bool) {
	i := q.numberIndex(number)
	if i < 0 {
		return closedRequest{}, false
	}
	c.ID = q.Open[i].ID
	if taken {
		c.By = q.Open[i].By.withoutText() // nil when something other than an answer ended the request
	}
	q.Open = slices.Delete(q.Open, i, i+1)
	q.Closed = addNewest(q.Closed, c, mostClosed)
	return c, true
}

// openIndex returns the index of an open request; -1 when there is none of this id.
func (q *requests) openIndex(id string) int {
	return slices.IndexFunc(q.Open, func(o openRequest) bool { return o.ID == id })
}

// numberIndex returns the index of the open request that the program calls by this number; -1 when there is none.
func (q *requests) numberIndex(number string) int {
	return slices.IndexFunc(q.Open, func(o openRequest) bool { return cmp.Or(o.Number, o.ID) == number })
}

// nth returns the number of an open request for people.
func (q *requests) nth(id string) string {
	if i := q.openIndex(id); i >= 0 {
		return fmt.Sprint(q.Open[i].Nth)
	}
	return "?"
}

// unanswered returns the open requests for which agency has written no answer.
func (q *requests) unanswered() []*Request {
	var all []*Request
	for i := range q.Open {
		if q.Open[i].By == nil {
			all = append(all, &q.Open[i].Request)
		}
	}
	return all
}

// answerable returns the request of this id. The error says why it cannot be answered.
func (q *requests) answerable(id string) (*Request, error) {
	if i := q.openIndex(id); i >= 0 {
		if by := q.Open[i].By; by != nil {
			return nil, answeredBefore(id, by)
		}
		return &q.Open[i].Request, nil
	}
	i := slices.IndexFunc(q.Closed, func(c closedRequest) bool { return c.ID == id })
	switch {
	case i < 0:
		return nil, agency.Errorf(agency.CodeInvalidState, "its agent does not ask %s", plain.Clip(id))
	case q.Closed[i].By == nil:
		return nil, agency.Errorf(agency.CodeInvalidState, "the request %s is over: its agent withdrew it", plain.Clip(id))
	default:
		return nil, answeredBefore(id, q.Closed[i].By)
	}
}

// answeredBefore is the error for an answer that comes after another one.
func answeredBefore(id string, by *Intent) error {
	return agency.Errorf(agency.CodeInvalidState, "the request %s was answered by %s at %s: %s",
		plain.Clip(id), by.By, by.At.Format("15:04:05"), plain.Clip(answerText(&by.Saying))).WithDetail("answered_by", by.By)
}

// answerText returns an answer as people read it.
func answerText(s *agency.Saying) string {
	switch {
	case s.Decision == "":
		return s.Answer
	case s.Answer == "":
		return string(s.Decision)
	default:
		return string(s.Decision) + ": " + s.Answer
	}
}

// Typed returns what a text means that the user typed into the pane. It is a message with this id unless
// the agent asks. Then only what answers the request is taken as an answer: the request may have come
// while the user typed a message.
func (q *requests) Typed(id, text string) (agency.Saying, error) {
	unanswered := q.unanswered()
	switch len(unanswered) {
	case 0:
		return agency.Saying{Kind: agency.SaysMessage, ID: id, Text: text, By: agency.User}, nil
	case 1:
	default:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks %d things at once", len(unanswered)).WithHint("agency answer RUN --prompt-id ID allow|deny|TEXT")
	}
	r, word := unanswered[0], strings.ToLower(text)
	s := agency.Saying{Kind: agency.SaysAnswer, ID: r.ID, By: agency.User}
	switch {
	case r.Kind == agency.AsksPermission && (word == string(agency.Allow) || word == string(agency.Deny)):
		s.Decision = agency.Decision(word)
	case r.Kind == agency.AsksPermission:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks for permission").WithHint("type allow or deny")
	case slices.ContainsFunc(r.Options, func(o string) bool { return strings.EqualFold(o, text) }):
		s.Answer = text
	default:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks a question, and this is none of the answers that it names").WithHint("agency answer RUN TEXT")
	}
	return s, nil
}

// addForeign adds a request that agency does not know. agency refuses it, unless its id is too long to
// be remembered.
func (q *requests) addForeign(id, name string) {
	q.Unknown++
	if len(id) <= mostID {
		q.Foreign = append(q.Foreign, foreignRequest{ID: id, Name: plain.Clip(plain.OneLine(name)), Refusal: fmt.Sprint("refusal-", q.Unknown)})
	}
}

// refusedBy returns the request that a refusal is about.
func (q *requests) refusedBy(refusal string) foreignRequest {
	i := slices.IndexFunc(q.Foreign, func(f foreignRequest) bool { return f.Refusal == refusal })
	return q.Foreign[i]
}

// Refusals returns what to say to the requests that agency does not know: without a reply the agent
// would wait forever.
func (q *requests) Refusals() []agency.Saying {
	all := make([]agency.Saying, 0, len(q.Foreign))
	for _, f := range q.Foreign {
		all = append(all, agency.Saying{Kind: saysRefusal, ID: f.Refusal, Text: f.Name, By: "agency"})
	}
	return all
}
