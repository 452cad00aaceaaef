package status

// Rules returns all rules, in the order in which they are tried.
func Rules() []Rule { return rules }
