package docker_test

import (
	"sync"
	"testing"

	"agency/internal/docker"
	"agency/test/fixture"
)

// Who removes a container while others do is told when it is gone.
func TestRemoveAtOnce(t *testing.T) {
	if why := fixture.NoEngine(); why != "" || fixture.Race {
		t.Skip("a Docker daemon cannot be started here: " + why)
	}
	engine, err := fixture.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.End)
	client := docker.New(engine.Socket)
	for range 5 {
		of := &docker.Container{Image: fixture.Image, Cmd: []string{"sleep", "600"}}
		if err := client.Create(t.Context(), "busy", of); err != nil {
			t.Fatal(err)
		}
		if err := client.Start(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := client.Remove(t.Context(), "busy"); err != nil {
					t.Error(err)
				}
				if _, err := client.Inspect(t.Context(), "busy"); !docker.Missing(err) {
					t.Errorf("it is still there: %v", err)
				}
			})
		}
		all.Wait()
	}
}
