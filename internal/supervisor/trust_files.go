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
	texts := []string{string(project)}
	for _, f := range files {
		texts = append(texts, f.Path, f.Content)
	}
	return hashTexts(texts)
}

// hashTexts returns a hash of a list of texts. The length before each makes lists differ whose texts
// are divided elsewhere.
func hashTexts(texts []string) string {
	sum := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(text), text)
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
