package contract

import _ "embed" // for the schema

// Schema is the JSON Schema (draft 2020-12) of the contract. It accepts what Parse accepts, except
// for what a schema cannot express: the size, the encoding, and duplicate keys.
//
//go:embed runner_status.schema.json
var Schema string
