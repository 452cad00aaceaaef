package agency

import _ "embed" // for the schema

// ContractSchema is the JSON Schema (draft 2020-12) of the contract. It allows what ParseContract takes, but for what no schema
// can say: the size, the encoding, and keys that stand twice.
//
//go:embed runner_status.schema.json
var ContractSchema string
