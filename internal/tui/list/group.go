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
	ByTag // the first of a run's tags that is not its type, by the alphabet
)

// Next returns what comes after it, around the end.
func (b By) Next() By { return (b + 1) % (ByTag + 1) }

// String returns what it is, in words.
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

// key returns what tells the group of a run from others; empty for a run that has none.
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

// tag returns the tag that a run is grouped by. Every run has its type for a tag too, which groups
// nothing.
func tag(r *api.Run) string {
	tags := slices.DeleteFunc(slices.Sorted(slices.Values(r.Tags)), func(tag string) bool { return tag == r.Type })
	if len(tags) == 0 {
		return ""
	}
	return tags[0]
}

// compare returns a negative number when a comes before b in the list: by the name of its group, those
// without one last, and in a group by how much it needs a user.
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
