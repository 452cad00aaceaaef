package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/proc"
)

// CPU returns the processor time that a process and all processes below it have used, including
// children that ended. It is 0 for a process that is gone, or that cannot be looked at.
func CPU(p agency.Process) time.Duration {
	if alive, err := Alive(p); !alive || err != nil {
		return 0
	}
	var ticks uint64
	seen := map[int]bool{}
	for queue := []int{p.PID}; len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		s, err := proc.Of(pid)
		if err != nil {
			continue
		}
		ticks += s.Own + s.Children
		queue = append(queue, childrenOf(pid, s.Threads)...)
	}
	return time.Duration(ticks) * proc.Tick
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid, threads int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	tasks := []string{strconv.Itoa(pid)}
	if threads > 1 {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.Name() != tasks[0] {
				tasks = append(tasks, e.Name())
			}
		}
	}
	var children []int
	for _, task := range tasks {
		data, err := proc.Read(dir + task + "/children")
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
