package runner

import "os"

// growPipe does nothing: this kernel sizes its pipes itself.
func growPipe(*os.File) {}
