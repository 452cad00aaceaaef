package diffview

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sort is the sort of a piece of code.
type Sort int

// The sorts of code.
const (
	Text Sort = iota
	Keyword
	String
	Comment
	Number
)

// Token is a piece of a line.
type Token struct {
	Sort Sort
	Text string
}

// language has the syntax of a language that the lexer knows.
type language struct {
	comment  string // what begins a comment until the end of the line; empty for none
	quotes   string // the characters that begin and end a string
	keywords string // with a space around each
}

const (
	goWords     = " break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false "
	scriptWords = " as async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield "
	pythonWords = " and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield "
	shellWords  = " case do done elif else esac exit export fi for function if in local return set shift then trap until while "
	rustWords   = " as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while "
	cWords      = " auto bool break case catch char class const constexpr continue default delete do double else enum extern false final float for goto if import inline int interface long namespace new null nullptr override package private protected public return short signed sizeof static struct super switch template this throw throws true try typedef union unsigned using virtual void volatile while "
	rubyWords   = " alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield "
	sqlWords    = " add alter and as asc begin by case commit create delete desc distinct drop else end exists foreign from group having in index insert into is join key left limit not null on or order primary references select set table then union unique update values view when where "
)

// languageOf returns the language of a file by its name, and reports whether the lexer knows it.
func languageOf(name string) (language, bool) {
	switch base := strings.ToLower(path.Base(name)); strings.TrimPrefix(path.Ext(base), ".") {
	case "go":
		return language{"//", "\"'`", goWords}, true
	case "js", "jsx", "mjs", "cjs", "ts", "tsx":
		return language{"//", "\"'`", scriptWords}, true
	case "py", "pyi":
		return language{"#", "\"'", pythonWords}, true
	case "sh", "bash", "zsh", "fish":
		return language{"#", "\"'", shellWords}, true
	case "rs":
		return language{"//", "\"", rustWords}, true
	case "c", "h", "cc", "cpp", "hpp", "java", "kt", "cs", "swift", "php":
		return language{"//", "\"'", cWords}, true
	case "rb":
		return language{"#", "\"'", rubyWords}, true
	case "sql":
		return language{"--", "'", sqlWords}, true
	case "yaml", "yml", "toml", "ini":
		return language{"#", "\"'", " true false null "}, true
	case "json":
		return language{"", "\"", " true false null "}, true
	default:
		if base == "makefile" || base == "dockerfile" {
			return language{"#", "\"'", shellWords}, true
		}
		return language{}, false
	}
}

// Lex returns the pieces of a line of a file. name is that of the file. Lex knows only the one line, so a comment
// or a string over several lines is plain text.
func Lex(name, line string) []Token {
	l, ok := languageOf(name)
	if !ok {
		return []Token{{Text, line}}
	}
	tokens, rest := []Token{}, line
	// take adds the next bytes as a token, or to the token before if that has the same sort. Tokens are parts of
	// the line, so nothing is copied: a line may have a megabyte.
	take := func(s Sort, n int) {
		at := len(line) - len(rest)
		rest = rest[n:]
		if i := len(tokens) - 1; i >= 0 && tokens[i].Sort == s {
			tokens[i].Text = line[at-len(tokens[i].Text) : at+n]
			return
		}
		tokens = append(tokens, Token{s, line[at : at+n]})
	}
	for rest != "" {
		switch c, size := utf8.DecodeRuneInString(rest); {
		case l.comment != "" && strings.HasPrefix(rest, l.comment):
			take(Comment, len(rest))
		case strings.ContainsRune(l.quotes, c):
			take(String, quoted(rest))
		case isWord(c):
			n := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
			if n < 0 {
				n = len(rest)
			}
			take(l.sort(rest[:n]), n)
		default:
			n := size + strings.IndexFunc(rest[size:], func(r rune) bool {
				return isWord(r) || strings.ContainsRune(l.quotes, r) || l.comment != "" && strings.ContainsRune(l.comment, r)
			})
			if n < size {
				n = len(rest)
			}
			take(Text, n)
		}
	}
	return tokens
}

// sort returns the sort of a word or number.
func (l *language) sort(word string) Sort {
	switch {
	case word[0] >= '0' && word[0] <= '9':
		return Number
	case strings.Contains(l.keywords, " "+word+" "), strings.HasPrefix(l.comment, "--") && strings.Contains(l.keywords, " "+strings.ToLower(word)+" "):
		return Keyword
	default:
		return Text
	}
}

// quoted returns the length of the string at the beginning of a line, with its quotes.
func quoted(line string) int {
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && line[0] != '`':
			i++
		case line[i] == line[0]:
			return i + 1
		}
	}
	return len(line)
}

// isWord reports whether a character can be part of a word.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
