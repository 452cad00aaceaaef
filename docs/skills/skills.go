// Package skills holds what teaches agents to use agency.
package skills

import _ "embed"

// Agency is the skill of an agent that orchestrates others by agency's tools.
//
//go:embed agency/SKILL.md
var Agency string
