package config

import _ "embed"

//go:embed example.toml
var example string

// SampleFile returns the configuration file with every key, its meaning and its default, which the
// README names.
func SampleFile() string { return example }
