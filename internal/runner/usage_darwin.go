package runner

import (
	"time"

	"agency"
)

// CPU is not known here: the kernel tells it only by calls that need cgo. Silence is then judged by output and files.
func CPU(agency.Process) time.Duration { return 0 }
