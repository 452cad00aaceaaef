package scaffold

import (
	"bytes"
	_ "embed" // for the template
	"regexp"
	"sync"
	"unicode"
)

//go:embed templates/report.md
var report string

// comment is an HTML comment; one that is never closed reaches to the end.
var comment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<!--.*?(-->|\z)`) })

// ReportUnfilled reports whether a report is still empty: it has no letter and no digit outside its
// headings and comments.
func ReportUnfilled(data []byte) bool {
	for line := range bytes.Lines(comment().ReplaceAll(data, nil)) {
		line = bytes.TrimSpace(line)
		if !bytes.HasPrefix(line, []byte("#")) && bytes.ContainsFunc(line, isWord) {
			return false
		}
	}
	return true
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
