package main

import (
	"strings"
	"testing"
)

// A section that does not exist is an error that names those that do, and measures nothing.
func TestUnknownSection(t *testing.T) {
	t.Parallel()
	err := measure(t.Context(), "/no/such/program", true, "ls", "")
	if err == nil || !strings.Contains(err.Error(), `no section "ls"; there are program, create`) {
		t.Errorf("got %v", err)
	}
}
