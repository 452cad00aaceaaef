package plan

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agency"
	"agency/internal/plain"
)

// touch is a parsed pattern of files.
type touch struct {
	text     string
	prefix   string // the beginning of every path that it matches
	literal  bool   // it is the path of one file, or of a folder that was not marked with a slash
	segments []touchSegment
}

// touchSegment is the part between two slashes.
type touchSegment struct {
	deep   bool // **: any number of folders
	parts  []touchPart
	weight int // the cost of a comparison, together with that of the other segment
}

// touchPart is one character of a set or, with star, any number of any characters.
type touchPart struct {
	star bool
	of   []runeSpan // sorted and disjoint
}

type runeSpan struct{ low, high rune }

// anyRune is the set of characters that a name can have; a segment contains no slash.
var anyRune = []runeSpan{{1, '/' - 1}, {'/' + 1, unicode.MaxRune}}

const (
	longestTouch = 256   // bytes
	mostTouches  = 1_000 // patterns of one agent
)

// parseTouch reads a pattern: * is any part of a name, ? one character, [a-z] one of a set, [!a-z]
// one of the others, ** on its own any number of folders, and a slash at the end everything in the
// folder. problem is what is wrong with it, and hint the way out.
func parseTouch(text string) (t *touch, problem, hint string) {
	switch {
	case text == "":
		return nil, "is empty", "name a file, a folder, or a pattern such as internal/auth/**"
	case len(text) > longestTouch:
		return nil, "is too long", "a pattern has at most 256 bytes"
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, "holds a character that is not printed", "write ? in its place"
	case strings.ContainsRune(text, '\\'):
		return nil, "holds a backslash", "separate folders by /, and write [*] for a star that is part of a name"
	case strings.ContainsAny(text, "{}"):
		return nil, "holds a brace", "write one pattern for each alternative"
	case strings.HasPrefix(text, "!"):
		return nil, "begins with !", "name what the agent changes, not what it leaves alone"
	case strings.HasPrefix(text, "/"):
		return nil, "is absolute", "begin at the root of the repository, without the slash"
	}
	t = &touch{text: text}
	plain := true // only literal characters so far
	path, folder := strings.CutSuffix(text, "/")
	for i, name := range strings.Split(path, "/") {
		if name == "" || name == "." || name == ".." {
			return nil, "is not a plain path", "begin at the root of the repository, without empty parts, . and .."
		}
		if plain && i > 0 {
			t.prefix += "/"
		}
		if name == "**" {
			t.segments, plain = append(t.segments, touchSegment{deep: true}), false
			continue
		}
		if strings.Contains(name, "**") {
			return nil, "has ** beside other characters", "** must be alone between slashes: src/**/*.go"
		}
		parts, ok := parseTouchParts([]rune(name))
		if !ok {
			return nil, "has a [ without a right end", "for example [a-z] or [!0-9]; a [ that is part of a name is [[]"
		}
		weight := 1
		for _, part := range parts {
			weight += 1 + len(part.of)
			if plain = plain && !part.star && len(part.of) == 1 && part.of[0].low == part.of[0].high; plain {
				t.prefix += string(part.of[0].low)
			}
		}
		t.segments = append(t.segments, touchSegment{parts: parts, weight: weight})
	}
	if t.literal = plain && !folder; folder {
		t.segments = append(t.segments, touchSegment{deep: true})
	}
	return t, "", ""
}

func parseTouchParts(name []rune) ([]touchPart, bool) {
	var parts []touchPart
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '*':
			parts = append(parts, touchPart{star: true})
		case '?':
			parts = append(parts, touchPart{of: anyRune})
		case '[':
			spans, length := parseSpans(name[i:])
			if length == 0 {
				return nil, false
			}
			parts = append(parts, touchPart{of: spans})
			i += length - 1
		default:
			parts = append(parts, touchPart{of: []runeSpan{{name[i], name[i]}}})
		}
	}
	return parts, true
}

// parseSpans reads the set, such as [a-z], at the beginning of name and returns its length; 0 means
// that there is none.
func parseSpans(name []rune) (spans []runeSpan, length int) {
	i := 1
	others := i < len(name) && (name[i] == '!' || name[i] == '^')
	if others {
		i++
	}
	for first := i; ; {
		switch {
		case i >= len(name):
			return nil, 0
		case name[i] == ']' && i > first:
			slices.SortFunc(spans, func(a, b runeSpan) int { return int(a.low - b.low) })
			if others {
				spans = complement(spans)
			}
			if len(spans) == 0 {
				return nil, 0
			}
			return spans, i + 1
		}
		span := runeSpan{name[i], name[i]}
		if i+2 < len(name) && name[i+1] == '-' && name[i+2] != ']' {
			span.high = name[i+2]
			i += 2
		}
		if span.high < span.low {
			return nil, 0
		}
		spans = append(spans, span)
		i++
	}
}

// complement returns the characters of a name that are in none of the sorted spans.
func complement(spans []runeSpan) []runeSpan {
	var rest []runeSpan
	for _, all := range anyRune {
		low := all.low
		for _, s := range spans {
			if s.low > low && s.low <= all.high {
				rest = append(rest, runeSpan{low, s.low - 1})
			}
			low = max(low, s.high+1)
		}
		if low <= all.high {
			rest = append(rest, runeSpan{low, all.high})
		}
	}
	return rest
}

// touchesMeet reports whether a file can match both patterns. Each comparison costs a part of the
// budget; when that is used up the result has no meaning.
func touchesMeet(a, b *touch, budget *int) bool {
	// below[j] is whether the rest from the next segment of a and from segment j of b can meet.
	below := make([]bool, len(b.segments)+1)
	below[len(b.segments)] = true
	for j := len(b.segments) - 1; j >= 0 && b.segments[j].deep; j-- {
		below[j] = true
	}
	for _, segment := range slices.Backward(a.segments) {
		row := make([]bool, len(b.segments)+1)
		row[len(b.segments)] = segment.deep && below[len(b.segments)]
		for j := len(b.segments) - 1; j >= 0; j-- {
			if segment.deep || b.segments[j].deep {
				row[j] = below[j] || row[j+1]
			} else {
				*budget -= segment.weight * b.segments[j].weight
				row[j] = below[j+1] && namesMeet(segment.parts, b.segments[j].parts)
			}
		}
		*budget -= len(row)
		below = row
	}
	return below[0]
}

// namesMeet reports whether a name can match both.
func namesMeet(a, b []touchPart) bool {
	below := make([]bool, len(b)+1) // whether the rest from the next part of a and from part j of b can meet
	below[len(b)] = true
	for j := len(b) - 1; j >= 0 && b[j].star; j-- {
		below[j] = true
	}
	for _, part := range slices.Backward(a) {
		row := make([]bool, len(b)+1)
		row[len(b)] = part.star && below[len(b)]
		for j := len(b) - 1; j >= 0; j-- {
			if part.star || b[j].star {
				row[j] = below[j] || row[j+1]
			} else {
				row[j] = below[j+1] && spansMeet(part.of, b[j].of)
			}
		}
		below = row
	}
	return below[0]
}

func spansMeet(a, b []runeSpan) bool {
	for _, x := range a {
		for _, y := range b {
			if x.low <= y.high && y.low <= x.high {
				return true
			}
		}
	}
	return false
}

// touchBudget limits the cost of comparing a plan's patterns: about a second.
const touchBudget = 200_000_000

// validateTouches refuses two agents that can change the same file while neither waits for the
// other.
func validateTouches(p *agency.Plan, g *planGraph) error {
	type of struct {
		*touch
		agent int
	}
	var all []of
	for i := range p.Agents {
		if n := len(p.Agents[i].Touches); n > mostTouches {
			return agentFault(p, i, "touches", "agent %q touches %d patterns, more than %d", p.Agents[i].ID, n, mostTouches).
				WithHint("name folders instead of single files: src/")
		}
		for _, text := range p.Agents[i].Touches {
			t, problem, hint := parseTouch(text)
			if problem != "" {
				return agentFault(p, i, "touches", "agent %q: the pattern %q %s", p.Agents[i].ID, plain.Clip(text), problem).WithHint("%s", hint)
			}
			all = append(all, of{t, i})
		}
	}
	if len(all) < 2 {
		return nil
	}
	// If two patterns meet, the prefix of one begins with that of the other, so sorting brings them
	// together.
	slices.SortStableFunc(all, func(a, b of) int { return strings.Compare(a.prefix, b.prefix) })
	before, budget := g.ancestors(), touchBudget
	for i := range all {
		for j := i + 1; j < len(all) && strings.HasPrefix(all[j].prefix, all[i].prefix); j++ {
			a, b := all[i], all[j]
			budget--
			meet := false
			if a.agent != b.agent && !before[a.agent].has(b.agent) && !before[b.agent].has(a.agent) {
				through := a.literal && strings.HasPrefix(b.prefix, a.text+"/") // then a can only be a folder
				meet = through || touchesMeet(a.touch, b.touch, &budget)
			}
			if budget < 0 {
				return settingFault("agents", "the touches of the plan are too many to compare: %d patterns", len(all)).
					WithHint("name folders instead of single files, or leave touches out where agents come after each other")
			}
			if meet {
				if a.agent > b.agent {
					a, b = b, a
				}
				first, second := p.Agents[a.agent].ID, p.Agents[b.agent].ID
				return agentFault(p, b.agent, "touches", "agents %q and %q can run at once and touch the same files: %s and %s", first, second, a.text, b.text).
					WithHint("have one wait for the other: in %s, after: [%s]", second, first)
			}
		}
	}
	return nil
}
