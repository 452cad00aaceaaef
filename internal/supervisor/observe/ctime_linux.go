package observe

import (
	"syscall"
	"time"
)

func ctime(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctim.Sec, stat.Ctim.Nsec).UTC() }
