package agency

// States are all states, in the order of a life.
func States() []State { return []State{Queued, Running, Completed, Failed, Killed} }

// FactKinds are all facts.
func FactKinds() []FactKind { return []FactKind{FactStarted, FactStartFailed, FactExited, FactLost} }
