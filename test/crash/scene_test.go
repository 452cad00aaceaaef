package crash_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agency/test/fixture"
)

// scene is the process table of a world at one moment.
type scene struct {
	daemons  []int
	tmux     []int            // servers
	gits     []int            // started by any process
	wrappers map[string][]int // by run
	marked   map[string][]int // by run: processes with its mark, its agent and that agent's children
	all      map[int]string   // all of the world, with their command lines
}

func (w *processes) scene() *scene {
	seen := &scene{wrappers: map[string][]int{}, marked: map[string][]int{}, all: map[int]string{}}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		env, argv := words(path+"/environ"), words(path+"/cmdline")
		if !has(env, "ROOT="+w.f.Root) && !strings.Contains(strings.Join(argv, " "), w.f.Data) || len(argv) == 0 || !fixture.Lives(pid) {
			continue
		}
		seen.all[pid] = strings.Join(argv, " ")
		for _, kv := range env {
			if run, ok := strings.CutPrefix(kv, "AGENCY_RUN_ID="); ok {
				seen.marked[run] = append(seen.marked[run], pid)
			}
		}
		switch name := filepath.Base(argv[0]); {
		case name == "agency" && has(argv, "daemon") && has(argv, "run") && has(env, "AGENCY_HOME="+w.f.Data):
			seen.daemons = append(seen.daemons, pid)
		case len(argv) > 2 && argv[1] == "wrapper":
			if rest, ok := strings.CutPrefix(argv[2], filepath.Join(w.f.Data, "runs")+"/"); ok {
				run, _, _ := strings.Cut(rest, "/")
				seen.wrappers[run] = append(seen.wrappers[run], pid)
			}
		case name == "git":
			seen.gits = append(seen.gits, pid)
		case has(argv, w.f.Socket) && isServer(path):
			seen.tmux = append(seen.tmux, pid)
		}
	}
	return seen
}

// words returns the strings of a file of /proc, or none when the process is gone.
func words(path string) []string {
	data, _ := os.ReadFile(path)
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 })
}

// isServer reports whether a process of tmux is the server; its command line is that of the client
// that started it.
func isServer(path string) bool {
	name, _ := os.ReadFile(path + "/comm")
	return strings.TrimSpace(string(name)) == "tmux: server"
}

// daemons returns the daemons of this data root.
func (w *processes) daemons() []int { return w.scene().daemons }

// wrapper returns the wrapper of a run.
func (w *processes) wrapper(run string) []int { return w.scene().wrappers[run] }

// marked returns the processes that belong to a run's agent.
func (w *processes) marked(run string) []int { return w.scene().marked[run] }

func (w *processes) tmuxServer() []int { return w.scene().tmux }
