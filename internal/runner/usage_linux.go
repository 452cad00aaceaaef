package runner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/proc"
)

// CPU returns the processor time that a process and all processes below it have used, including
// children that ended. It is 0 for a process that is gone.
func CPU(p agency.Process) time.Duration {
	if !Alive(p) {
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
		if s, err := proc.Of(pid); err == nil {
			ticks += s.Own + s.Children
		}
		queue = append(queue, childrenOf(pid)...)
	}
	return time.Duration(ticks) * proc.Tick
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) []int {
	paths, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	var children []int
	for _, path := range paths {
		data, err := os.ReadFile(path)
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
