package list

import (
	"cmp"
	"path/filepath"
	"slices"

	"agency/internal/api"
	"agency/internal/view"
)

// By is what the runs of a list are grouped by.
type By int

// What runs can be grouped by, in the order in which a key goes through it.
const (
	ByNeed By = iota // how much they need a user
	ByRepository
	BySession
	ByTag // the first tag of the run, by the alphabet, that is not its type
)

// Next returns the criterion after this one, around the end.
func (b By) Next() By { return (b + 1) % (ByTag + 1) }

// String returns the criterion in words.
func (b By) String() string { return [...]string{"need", "repository", "session", "tag"}[b] }

// title returns the title of the group of a run. It is untrusted text.
func (b By) title(r *api.Run) string {
	key := b.key(r)
	switch {
	case b == ByNeed:
		return view.GroupOf(r).Title()
	case key == "":
		return "no " + b.String()
	case b == ByRepository:
		return filepath.Base(key)
	case b == BySession:
		return cmp.Or(r.Member.Name, key)
	default:
		return key
	}
}

// key returns what identifies the group of a run; empty for a run without one.
func (b By) key(r *api.Run) string {
	switch {
	case b == ByNeed:
		return view.GroupOf(r).Title()
	case b == ByRepository:
		return r.Repo
	case b == BySession && r.Member != nil:
		return string(r.Member.Session)
	case b == ByTag:
		return tag(r)
	default:
		return ""
	}
}

// tag returns the tag that a run is grouped by; empty if it has none. The type of a run is one of its tags
// too, and does not count.
func tag(r *api.Run) string {
	tags := slices.DeleteFunc(slices.Sorted(slices.Values(r.Tags)), func(tag string) bool { return tag == r.Type })
	if len(tags) == 0 {
		return ""
	}
	return tags[0]
}

// compare returns a negative number when x comes before y in the list. Groups are in the order of their
// titles, runs without a group come last, and in a group the runs that need a user most come first.
func (b By) compare(x, y *api.Run) int {
	if b == ByNeed {
		return view.Compare(x, y)
	}
	one, other := b.key(x), b.key(y)
	if (one == "") != (other == "") {
		return cmp.Compare(other, one) // the empty one is last
	}
	return cmp.Or(cmp.Compare(b.title(x), b.title(y)), cmp.Compare(one, other), view.Compare(x, y))
}
