package runner

import "os"

// growPipe does nothing: this kernel sizes its pipes itself.
func growPipe(*os.File) {}

// pipeSize returns how much a pipe holds for certain.
func pipeSize(*os.File) int { return 16 << 10 }
