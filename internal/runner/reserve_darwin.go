package runner

import "os"

// reserve is not to be had here.
func reserve(*os.File) {}
