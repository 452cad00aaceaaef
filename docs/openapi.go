// Package docs holds the documents that the program prints.
package docs

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of the daemon's operations. A test of internal/api makes it.
//
//go:embed openapi.json
var OpenAPI string
