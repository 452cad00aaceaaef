package plain

import "strings"

// Nearest returns the known word closest to a mistyped word, or "" when none is close and word is
// not the beginning of exactly one. It ignores case.
func Nearest(word string, known []string) string {
	const (
		longest  = 64 // maximum length of a word that is compared
		shortest = 4  // minimum length of a beginning
	)
	if len(word) > longest {
		return ""
	}
	best, least := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" && len(word) >= shortest {
		return only(word, known)
	}
	return best
}

// only returns the one known word that begins with word, or "" when there are none or several.
func only(word string, known []string) string {
	found := ""
	for _, k := range known {
		if len(k) >= len(word) && strings.EqualFold(k[:len(word)], word) {
			if found != "" {
				return ""
			}
			found = k
		}
	}
	return found
}

// distance returns how many insertions, removals, replacements and swaps of neighbouring letters
// turn a into b.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	older, old, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		older, old, row = old, row, older
		row[0] = i + 1
		for j := range to {
			cost := 1
			if from[i] == to[j] {
				cost = 0
			}
			row[j+1] = min(old[j+1]+1, row[j]+1, old[j]+cost)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(to)]
}
