package agency

// States are all states, in the order of a life.
func States() []State { return []State{Queued, Running, Completed, Failed, Killed} }

// FactKinds are all facts.
func FactKinds() []FactKind { return []FactKind{FactStarted, FactStartFailed, FactExited, FactLost} }

// Rules are all rules, in the order in which they are tried.
func Rules() []Rule { return rules }
