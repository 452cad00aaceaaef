package harness

import "agency"

// Hook reads what an agent tells its hook: one JSON document. What is not understood is evidence of the sign unknown.
func Hook(kind agency.RunnerKind, payload []byte) []agency.Evidence {
	return read(agency.FromHook, of(kind).Hook, payload)
}

// Stream reads one line that an agent without a terminal wrote.
func Stream(kind agency.RunnerKind, line []byte) []agency.Evidence {
	return read(agency.FromStream, of(kind).Stream, line)
}

// Streams says whether the output of an agent without a terminal tells how it does.
func Streams(kind agency.RunnerKind) bool { return of(kind).Stream != nil }

// Title reads the title that an agent gave its terminal.
func Title(kind agency.RunnerKind, title string) []agency.Evidence {
	return read(agency.FromTitle, of(kind).Title, title)
}

// ReadsScreen says whether Screen knows what the terminal of such an agent shows.
func ReadsScreen(kind agency.RunnerKind) bool { return of(kind).Screen != nil }

// Screen reads what an agent's terminal shows, the top line first. Its evidence carries a confidence.
func Screen(kind agency.RunnerKind, lines []string) []agency.Evidence {
	return read(agency.FromScreen, of(kind).Screen, lines)
}

// ErrorMarks are how the lines of an agent's terminal begin in which its program tells of errors; none where nothing tells them
// from what its model says.
func ErrorMarks(kind agency.RunnerKind) []string { return of(kind).ErrorMarks }

// Files are the files of an agent's own that tell how it does, as far as the situation names them.
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
