package scaffold

// Instructions are what every worktree gets.
func Instructions() []byte { return []byte(instructions) }
