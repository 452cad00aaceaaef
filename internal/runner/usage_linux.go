package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agency"
)

// clockTick is the unit in which the kernel counts processor time for user space, on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

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
		ticks += usedTicks(pid)
		queue = append(queue, childrenOf(pid)...)
	}
	return time.Duration(ticks) * clockTick
}

// usedTicks adds up utime, stime, cutime and cstime of proc(5), fields 14 to 17 of stat. The name in field 2 may hold
// anything, so counting begins behind it.
func usedTicks(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	var sum uint64
	for _, i := range []int{11, 12, 13, 14} {
		if i < len(fields) {
			n, _ := strconv.ParseUint(string(fields[i]), 10, 64)
			sum += n
		}
	}
	return sum
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
