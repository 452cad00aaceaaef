// Command picture draws the lines of a terminal as an SVG. It reads the text with its escape
// sequences, as tmux capture-pane -e prints it, from standard input.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The size of a cell in pixels, and the margin around the text.
const (
	cellWidth  = 8.4
	cellHeight = 20
	margin     = 16
)

// palette has the colours of SGR 30 to 37.
var palette = []string{"#45475a", "#d20f39", "#2e8b3d", "#b58900", "#1e66f5", "#8839ef", "#178a8f", "#4c4f69"}

func main() {
	title := strings.Join(os.Args[1:], " ")
	if err := draw(os.Stdout, os.Stdin, title); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// draw writes the SVG of the text that it reads from in. Screen readers read the title.
func draw(out io.Writer, in io.Reader, title string) error {
	var body strings.Builder
	columns, rows := 0, 0
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " ")
		columns = max(columns, ansi.StringWidth(line))
		drawLine(&body, line, float64(margin+rows*cellHeight+cellHeight*3/4))
		rows++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	width, height := float64(columns)*cellWidth+2*margin, rows*cellHeight+2*margin
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">
<title>%s</title>
<rect width="100%%" height="100%%" rx="8" fill="#eff1f5" stroke="#bcc0cc"/>
<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#4c4f69" xml:space="preserve">
%s</g>
</svg>
`, width, height, width, height, html.EscapeString(title), body.String())
	return err
}

// drawLine draws one line: each piece of one style at its column, so that no font moves the
// following pieces.
func drawLine(body *strings.Builder, line string, y float64) {
	style, text, column, state := "", "", 0, byte(0)
	begin := 0
	flush := func() {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(body, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", margin+float64(begin)*cellWidth, y, style, html.EscapeString(text))
		}
		text, begin = "", column
	}
	for line != "" {
		seq, width, n, next := ansi.DecodeSequence(line, state, nil)
		line, state = line[n:], next
		switch {
		case width > 0 && (width > 1 || seq[0] >= 0x80): // a wide or rare character may have another width in the reader's font
			flush()
			text = seq
			column += width
			flush()
		case width > 0:
			text += seq
			column += width
		case strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m"):
			flush()
			style = restyle(style, seq[2:len(seq)-1])
		}
	}
	flush()
}

// restyle returns the style after an SGR sequence with these parameters.
func restyle(style, params string) string {
	for p := range strings.SplitSeq(params, ";") {
		switch n, _ := strconv.Atoi(p); {
		case n == 0:
			style = ""
		case n == 1:
			style += ` font-weight="bold"`
		case n == 2:
			style += ` opacity="0.6"`
		case n >= 30 && n <= 37:
			style += fmt.Sprintf(` fill="%s"`, palette[n-30])
		}
	}
	return style
}
