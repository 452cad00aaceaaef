package agency

import (
	"fmt"
	"strings"
	"time"
)

// ShortDuration writes a duration as people read it in a table: 45s, 5m, 2h, 2h5m, 3d.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		if m := int(d.Minutes()) % 60; m != 0 {
			return fmt.Sprintf("%dh%dm", int(d.Hours()), m)
		}
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// OneLine is a text with each run of white space in it as one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns the beginning of a text of another, as much as a message has room for.
func Clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
