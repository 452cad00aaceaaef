package runner_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// chatter is an agent that says so many lines of so many bytes in each turn, all numbered.
func chatter(lines, size string) {
	perTurn, err := strconv.Atoi(lines)
	width, wrong := strconv.Atoi(size)
	if err != nil || wrong != nil {
		panic("chatter LINES SIZE")
	}
	in, out, said := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout), 0
	pad := strings.Repeat("x", width)
	for in.Scan() {
		kind, rest, _ := strings.Cut(in.Text(), " ")
		id, _, _ := strings.Cut(rest, " ")
		switch kind {
		case "hello", "look":
			_, _ = fmt.Fprintln(out, "hello", id)
		case "message":
			_, _ = fmt.Fprintln(out, "begun", id)
			for range perTurn {
				said++
				_, _ = fmt.Fprintln(out, "says", said, pad)
			}
			_, _ = fmt.Fprintln(out, "used", id)
		}
		_ = out.Flush()
	}
}
