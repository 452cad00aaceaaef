package crash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agency/test/fixture"
)

// containerPoints are the points that only a run in a container has.
var containerPoints = []string{"container.intended", "container.created", "container.removed"}

// A daemon or a wrapper that is killed at any step of a container leaves none.
func TestContainers(t *testing.T) {
	t.Parallel()
	if why := fixture.NoEngine(); why != "" || fixture.Race {
		t.Skip("a Docker daemon cannot be started for this: " + why)
	}
	engine, err := fixture.SharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	const setup = `sleep 600 & echo set up`
	// What the agent does lasts until the end of the kill, but at the last point. A setup has a
	// container of its own before.
	for _, c := range []struct{ point, victim, prompt, setup string }{
		{"container.intended", "daemon", "sleep 600", ""},
		{"container.created", "daemon", "sleep 600", ""},
		{"launch.written", "daemon", "sleep 600", ""},
		{"wrapper.launched", "wrapper", "sleep 600", ""},
		{"wrapper.forked", "wrapper", "sleep 600", ""},
		{"wrapper.started", "wrapper", "sleep 600", ""},
		{"container.removed", "daemon", "true", ""},
		{"container.intended", "daemon", "true", setup},
		{"container.created", "daemon", "true", setup},
		{"setup.started", "daemon", "true", "sleep 600"},
		{"container.removed", "daemon", "true", setup},
		{"setup.ended", "daemon", "true", setup},
	} {
		of := "run in a container"
		if c.setup != "" {
			of += " with a setup"
		}
		t.Run(of+"/"+c.point, func(t *testing.T) {
			begin := time.Now()
			w := newWorld(t)
			w.f.Env = append(w.f.Env, "DOCKER_HOST=unix://"+engine.Socket)
			w.write("project/agency.toml", "[sandbox]\nimage = \""+fixture.Image+"\"\n")
			if c.setup != "" {
				w.write("project/agency.toml", fmt.Sprintf("[sandbox]\nimage = %q\n[scripts]\nsetup = [\"sh\", \"-c\", %q]\n", fixture.Image, c.setup))
				w.must("trust")
			}
			w.write("killpoint", c.point)
			w.start([]string{"run", "--sandbox", "container", "--network", "none", "--headless", "--runner", "shell", "--name", "boxed", "--prompt", c.prompt})
			w.await("the point "+c.point, func() bool { data, _ := os.ReadFile(w.path("killpoint.hit")); return len(data) > 0 })
			w.awaitClient()
			w.must("ls", "--all")
			t.Cleanup(func() {
				if t.Failed() {
					left, _ := filepath.Glob(filepath.Join(w.f.Data, "runs", "*", "attempts", "*", "container.json"))
					log, _ := os.ReadFile(filepath.Join(w.f.Data, "logs", "agencyd.log"))
					t.Logf("left are %v and %v, and these processes: %v\n%s", left, containers(w, engine), w.scene().all, log)
				}
			})
			// agency may have to wait twice for an engine on a busy machine, each time 30 s.
			w.awaitFor(3*time.Minute, "the end of the container", func() bool {
				files, _ := filepath.Glob(filepath.Join(w.f.Data, "runs", "*", "attempts", "*", "container.json"))
				return len(files) == 0 && len(containers(w, engine)) == 0
			})
			runs, err := w.runs()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				if r.Name == "boxed" && (!r.final() || len(w.marked(r.ID)) > 0) {
					t.Errorf("it is %s, and %v work on", r.State, w.marked(r.ID))
				}
			}
			note(cell{of + ": " + c.point, c.victim, outcomeUndone, time.Since(begin)})
		})
	}
}

// containers returns the names of the containers of a world.
func containers(w *world, engine *fixture.Engine) []string {
	names, err := engine.Containers(context.Background(), "agency.home="+w.f.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}
