package protocol

import (
	"path/filepath"
	"strings"
)

// imageTypes are the media types of the images that agents read, by the ending of the file.
var imageTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

// ImageType returns the media type of an image file; empty for other files.
func ImageType(path string) string { return imageTypes[strings.ToLower(filepath.Ext(path))] }
