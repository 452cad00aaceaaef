package script_test

import (
	"github.com/rogpeppe/go-internal/testscript"

	"agency/test/fixture"
)

// engine starts the Docker daemon of the tests, which is DOCKER_HOST from then on, and has the image
// agency-test:1.
func engine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: engine")
	}
	e, err := fixture.SharedEngine()
	ts.Check(err)
	ts.Setenv("DOCKER_HOST", "unix://"+e.Socket)
}
