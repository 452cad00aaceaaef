package script_test

import (
	"testing"

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

// withEngine returns a fixture whose DOCKER_HOST is the Docker daemon of the tests.
func withEngine(t *testing.T) *fixture.Fixture {
	t.Helper()
	if why := fixture.NoEngine(); why != "" || fixture.Race {
		t.Skip("a Docker daemon cannot be started here: " + why)
	}
	e, err := fixture.SharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	f := fixture.New(t, bin)
	f.Env = append(f.Env, "DOCKER_HOST=unix://"+e.Socket)
	return f
}
