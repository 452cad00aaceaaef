package contract

// Validate checks what a status requires.
var Validate = validate
