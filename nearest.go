package agency

import "strings"

// Nearest is the known word that somebody who wrote word most likely meant, or "" when none is close and no single one begins with it.
// Upper and lower case count as the same.
func Nearest(word string, known []string) string {
	const longest = 64 // of a word that is worth comparing
	if len(word) > longest {
		return ""
	}
	best, least := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" && len(word) >= MinPrefix {
		return only(word, known)
	}
	return best
}

// only is the one known word that begins with word; "" when there are none or several.
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

// distance is the number of letters to insert, remove, replace or swap with their neighbour that turns a into b.
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
