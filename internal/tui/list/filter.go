package list

import (
	"path/filepath"
	"slices"
	"strings"

	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Matches reports whether a filter shows a run. All words of the filter must match: s:WORD a part of the
// status or the beginning of the group, t:WORD the beginning of a tag, r:WORD a part of the name of the
// repository, and any other word letters of the name in their order, or a part of the summary.
func Matches(filter string, r *api.Run) bool {
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		kind, rest, ok := strings.Cut(word, ":")
		found := false
		switch {
		case ok && kind == "s":
			status := strings.ReplaceAll(r.Status.String(), " ", "-")
			found = strings.Contains(status, rest) || strings.HasPrefix(strings.ToLower(strings.ReplaceAll(view.GroupOf(r).Title(), " ", "-")), rest)
		case ok && kind == "t":
			found = slices.ContainsFunc(r.Tags, func(tag string) bool { return strings.HasPrefix(strings.ToLower(tag), rest) })
		case ok && kind == "r":
			found = strings.Contains(strings.ToLower(filepath.Base(r.Repo)), rest)
		default:
			found = page.InOrder(word, strings.ToLower(r.Ref())) || strings.Contains(strings.ToLower(view.Summary(r)), word)
		}
		if !found {
			return false
		}
	}
	return true
}
