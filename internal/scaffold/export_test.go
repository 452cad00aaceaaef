package scaffold

// Instructions returns the instructions that every worktree gets.
func Instructions() []byte { return []byte(instructions) }
