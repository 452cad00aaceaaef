package contract

import _ "embed" // for the schema

// Schema is the JSON Schema (draft 2020-12) of the contract. It allows what Parse takes, but for what no schema
// can say: the size, the encoding, and keys that stand twice.
//
//go:embed runner_status.schema.json
var Schema string
