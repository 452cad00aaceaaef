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

// CPU is the processor time that a process and all below it have used, with that of children that ended. A process that
// is gone has used none.
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

// childrenOf asks each thread for the children that it made.
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
