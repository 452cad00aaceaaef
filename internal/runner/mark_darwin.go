package runner

// setMark does nothing: this kernel does not show the limits of other processes, so the environment has to do.
func setMark(int, []string) {}

// DropMark has nothing to drop.
func DropMark() {}

func limit(int) uint64 { return 0 }
