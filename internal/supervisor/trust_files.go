package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"agency"
)

// trustHash returns the hash that a user trusts: of the bytes of the project file and of the files
// that its setup names.
func trustHash(project []byte, files []agency.SetupFile) string {
	sum := sha256.New()
	add := func(text string) { _, _ = fmt.Fprintf(sum, "%d:%s", len(text), text) }
	add(string(project))
	for _, f := range files {
		add(f.Path)
		add(f.Content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// checkWords returns the words of all checks that could name files of the repository, without a
// leading "./".
func checkWords(checks []agency.Check) []string {
	var words []string
	for i := range checks {
		words = append(words, fileWords(checks[i].Run)...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// fileWords returns the words of a command line that could name files of a repository, without a
// leading "./".
func fileWords(argv []string) []string {
	var words []string
	for _, word := range argv {
		word = strings.TrimPrefix(word, "./")
		if word != "" && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "/") && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
