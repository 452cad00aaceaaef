package main

import (
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	var svg strings.Builder
	if err := draw(&svg, strings.NewReader("login  \x1b[33m◐ needs input\x1b[0m  a < b\n"), "two & two"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>two &amp; two</title>", ">login  </text>", ` fill="#b58900">◐</text>`, ` fill="#b58900"> needs input</text>`, ">  a &lt; b</text>",
	} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("no %q in\n%s", want, svg.String())
		}
	}
}
