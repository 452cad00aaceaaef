package agency

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
)

// Screen is what the terminal of a run shows, as cells and not as a byte stream: no text in it is a
// command for a terminal. The texts are the agent's, so they are untrusted.
type Screen struct {
	// Revision changes with whatever else is in the screen. It is the same for the same screen, also
	// from another daemon.
	Revision string `json:"revision"`
	// Live is whether the rows are those of a terminal; else they are the end of the run's log, and
	// there is no size and no cursor.
	Live   bool           `json:"live"`
	Width  int            `json:"width"`  // in cells
	Height int            `json:"height"` // of the screen, without the history
	Cursor *ScreenCursor  `json:"cursor"` // where it is; null when it is hidden
	Above  int            `json:"above"`  // how many of the first rows scrolled off the screen
	Rows   [][]StyledText `json:"rows"`   // from the top; blank rows at the end are left out; never null
}

// ScreenCursor is a place on a screen, counted from 0 at its top left.
type ScreenCursor struct {
	Column int `json:"column"` // from the left, counted from 0
	Row    int `json:"row"`    // from the top of the screen, without the history, counted from 0
}

// StyledText is text of one style in a row of a screen. A row is as wide as its texts together; what
// is right of them is blank.
type StyledText struct {
	Text string `json:"text"` // without control characters
	// Foreground is the colour of the text: 0 to 255 of the palette, of which the first 16 are the
	// terminal's own, or #rrggbb. Left out is the terminal's default.
	Foreground string `json:"fg,omitempty"`
	Background string `json:"bg,omitempty"` // the colour behind the text, likewise
	// Attributes has a letter for each attribute: b bold, d dim, i italic, u underlined, r reversed, s
	// struck through.
	Attributes string `json:"attributes,omitempty"`
}

// Stamp sets the revision of a screen that is complete.
func (s *Screen) Stamp() {
	s.Revision = ""
	text, err := json.Marshal(s)
	if err != nil {
		return // never: a screen can always be encoded
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	s.Revision = strconv.FormatUint(sum.Sum64(), 36)
}
