package protocol

import (
	"path/filepath"
	"strings"
)

// imageTypes are the images that agents read, and their media types.
var imageTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

// ImageType returns the media type of an image by the name of its file; empty for other files.
func ImageType(path string) string { return imageTypes[strings.ToLower(filepath.Ext(path))] }
