package observe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"agency"
	"agency/internal/plain"
)

// styledRows reads text with the escape sequences of styles, a row a line. Every other sequence is
// left out, and so is every character that a terminal would obey. Blank rows at the end are left
// out too.
func styledRows(text string) [][]agency.StyledText {
	rows := [][]agency.StyledText{}
	var c cellReader
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		rows = append(rows, c.row(line))
	}
	for len(rows) > 0 && len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// cellReader reads rows one after another: a style lasts until it is changed.
type cellReader struct {
	style    agency.StyledText // without a text
	graphics bool              // letters are the lines of the DEC character set
	texts    []agency.StyledText
	text     strings.Builder // of the present style
}

func (c *cellReader) row(line string) []agency.StyledText {
	c.texts = []agency.StyledText{}
	for line != "" {
		switch line[0] {
		case '\x1b':
			line = c.escape(line[1:])
		case '\x0e', '\x0f': // shift out, shift in
			c.graphics, line = line[0] == '\x0e', line[1:]
		default:
			end := strings.IndexAny(line, "\x1b\x0e\x0f")
			if end < 0 {
				end = len(line)
			}
			c.write(line[:end])
			line = line[end:]
		}
	}
	c.flush()
	for n := len(c.texts) - 1; n >= 0 && isPlain(c.texts[n]); n-- {
		c.texts[n].Text = strings.TrimRight(c.texts[n].Text, " ")
		if c.texts[n].Text != "" {
			break
		}
		c.texts = c.texts[:n]
	}
	return c.texts
}

// isPlain reports whether a text has no style, so that spaces at its end are blank.
func isPlain(s agency.StyledText) bool { return s == agency.StyledText{Text: s.Text} }

func (c *cellReader) write(text string) {
	if c.graphics {
		text = decGraphics.Replace(text)
	}
	c.text.WriteString(strings.ReplaceAll(plain.Visible(text), "\t", " "))
}

// decGraphics are the lines and corners of the DEC character set, which tmux keeps as letters.
var decGraphics = strings.NewReplacer("j", "┘", "k", "┐", "l", "┌", "m", "└", "n", "┼", "q", "─", "t", "├", "u", "┤", "v", "┴", "w", "┬", "x", "│", "a", "▒", "~", "·", "`", "◆", "f", "°", "g", "±")

func (c *cellReader) flush() {
	if c.text.Len() > 0 {
		styled := c.style
		styled.Text = c.text.String()
		c.texts = append(c.texts, styled)
		c.text.Reset()
	}
}

// escape reads what follows an escape character and returns the rest of the line.
func (c *cellReader) escape(line string) string {
	if line == "" {
		return ""
	}
	switch line[0] {
	case '[':
		end := strings.IndexFunc(line[1:], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return ""
		}
		if line[1+end] == 'm' {
			c.flush()
			c.style = restyled(c.style, line[1:1+end])
		}
		return line[end+2:]
	case ']', 'P', 'X', '^', '_': // a text for the terminal itself
		end := strings.IndexAny(line, "\x07\x1b")
		switch {
		case end < 0:
			return ""
		case line[end] == '\x07':
			return line[end+1:]
		default:
			return strings.TrimPrefix(line[end+1:], "\\")
		}
	default:
		rest := strings.TrimLeft(line, " !\"#$%&'()*+,-./")
		return rest[min(1, len(rest)):]
	}
}

// The attributes by the parameters that set them, and those that reset them.
var (
	attributes = map[int]string{1: "b", 2: "d", 3: "i", 4: "u", 7: "r", 9: "s", 21: "u"}
	resets     = map[int]string{22: "bd", 23: "i", 24: "u", 27: "r", 29: "s"}
)

// restyled returns a style after the parameters of one sequence.
func restyled(s agency.StyledText, parameters string) agency.StyledText {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		code, detail, detailed := strings.Cut(codes[i], ":")
		n, err := strconv.Atoi(cmp.Or(code, "0"))
		if err != nil {
			continue
		}
		switch {
		case n == 0:
			s = agency.StyledText{}
		case n == 4 && detailed && detail == "0":
			s.Attributes = strings.ReplaceAll(s.Attributes, "u", "")
		case attributes[n] != "":
			if !strings.Contains(s.Attributes, attributes[n]) {
				s.Attributes += attributes[n]
			}
		case resets[n] != "":
			s.Attributes = strings.Map(func(r rune) rune {
				if strings.ContainsRune(resets[n], r) {
					return -1
				}
				return r
			}, s.Attributes)
		case n == 38 || n == 48:
			colour, used := "", 0
			if detailed {
				colour, _ = colourOf(strings.Split(strings.Replace(detail, "2::", "2:", 1), ":"))
			} else if colour, used = colourOf(codes[i+1:]); used == 0 {
				return s
			}
			i += used
			if n == 38 {
				s.Foreground = colour
			} else {
				s.Background = colour
			}
		case n >= 30 && n <= 37:
			s.Foreground = strconv.Itoa(n - 30)
		case n >= 90 && n <= 97:
			s.Foreground = strconv.Itoa(n - 90 + 8)
		case n == 39:
			s.Foreground = ""
		case n >= 40 && n <= 47:
			s.Background = strconv.Itoa(n - 40)
		case n >= 100 && n <= 107:
			s.Background = strconv.Itoa(n - 100 + 8)
		case n == 49:
			s.Background = ""
		}
	}
	return s
}

// colourOf reads a colour of the palette, "5;N", or one of red, green and blue, "2;R;G;B". used is
// how many parameters it has, 0 when they are not a colour.
func colourOf(codes []string) (colour string, used int) {
	var values [4]int
	for i := range min(len(codes), len(values)) {
		n, err := strconv.Atoi(cmp.Or(codes[i], "0"))
		if err != nil || n < 0 || n > 255 {
			return "", 0
		}
		values[i] = n
	}
	switch {
	case len(codes) >= 2 && values[0] == 5:
		return strconv.Itoa(values[1]), 2
	case len(codes) >= 4 && values[0] == 2:
		return fmt.Sprintf("#%02x%02x%02x", values[1], values[2], values[3]), 4
	default:
		return "", 0
	}
}
