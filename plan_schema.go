package agency

import _ "embed" // for the schema

// PlanSchema is the JSON Schema (draft 2020-12) of the YAML form of a plan. It allows what the reader takes, but for what no schema
// can say: how the agents hang together, and the files that they name.
//
//go:embed session_plan.schema.json
var PlanSchema string
