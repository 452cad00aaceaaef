package harness

import "agency"

// Hook reads the input of an agent's hook: one JSON document. Input that is not understood yields
// evidence with the signal unknown.
func Hook(kind agency.RunnerKind, payload []byte) []agency.Evidence {
	return read(agency.FromHook, of(kind).Hook, payload)
}

// Stream reads one line that an agent without a terminal wrote.
func Stream(kind agency.RunnerKind, line []byte) []agency.Evidence {
	return read(agency.FromStream, of(kind).Stream, line)
}

// Streams reports whether the output of an agent without a terminal shows its state.
func Streams(kind agency.RunnerKind) bool { return of(kind).Stream != nil }

// Title reads the title that an agent set on its terminal.
func Title(kind agency.RunnerKind, title string) []agency.Evidence {
	return read(agency.FromTitle, of(kind).Title, title)
}

// ReadsScreen reports whether Screen can read the terminal of such an agent.
func ReadsScreen(kind agency.RunnerKind) bool { return of(kind).Screen != nil }

// Screen reads the lines of an agent's terminal, the top line first. Its evidence has a confidence.
func Screen(kind agency.RunnerKind, lines []string) []agency.Evidence {
	return read(agency.FromScreen, of(kind).Screen, lines)
}

// ErrorMarks returns the beginnings of the lines on an agent's terminal in which its program
// reports errors; none where they cannot be distinguished from output of its model.
func ErrorMarks(kind agency.RunnerKind) []string { return of(kind).ErrorMarks }

// Files returns the agent's own files that show its state, as far as its known state names them.
func Files(kind agency.RunnerKind, s *agency.AgentState, runner *agency.Process) []string {
	if files := of(kind).Files; files != nil {
		return files(s, runner)
	}
	return nil
}

// ReadFile reads what is new in one of these files; the source of its evidence is set.
func ReadFile(kind agency.RunnerKind, path string, s *agency.AgentState) []agency.Evidence {
	if readFile := of(kind).ReadFile; readFile != nil {
		return readFile(path, s)
	}
	return nil
}

func read[T any](source agency.Source, reader func(T) []agency.Evidence, from T) []agency.Evidence {
	if reader == nil {
		return nil
	}
	evidence := reader(from)
	for i := range evidence {
		evidence[i].Source = source
	}
	return evidence
}
