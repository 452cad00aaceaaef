package claude

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

// Limits of what is read of Claude Code's own files, in bytes.
const (
	sessionLimit = 64 << 10
	tailStep     = 256 << 10
)

// files returns the session file, which holds the current state of the program, and the transcript.
// Both are found by the path of the transcript, CONFIG/projects/FOLDER/ID.jsonl. Without a terminal
// the stream reports all that they would.
func files(s *agency.AgentState, runner *agency.Process) []string {
	folder, name := filepath.Split(s.Transcript)
	projects := filepath.Dir(filepath.Clean(folder))
	if _, streams := s.Sources[agency.FromStream]; streams || !filepath.IsAbs(s.Transcript) || filepath.Ext(name) != ".jsonl" || filepath.Base(projects) != "projects" {
		return nil
	}
	files := []string{filepath.Clean(s.Transcript)}
	if runner != nil && runner.PID > 0 {
		files = append(files, filepath.Join(filepath.Dir(projects), "sessions", strconv.Itoa(runner.PID)+".json"))
	}
	return files
}

// readFile reads what is new in one of these.
func readFile(path string, s *agency.AgentState) []agency.Evidence {
	if _, streams := s.Sources[agency.FromStream]; streams {
		return nil
	}
	evidence, source := []agency.Evidence(nil), agency.FromTranscript
	if filepath.Ext(path) == ".json" {
		evidence, source = session(path, s), agency.FromSession
	} else {
		evidence = transcript(path, s)
	}
	for i := range evidence {
		evidence[i].Source = source
	}
	return evidence
}

// session reads the session file. It returns nothing for a state that was read before: each state has
// its own time.
func session(path string, s *agency.AgentState) []agency.Evidence {
	data, err := file.ReadRegular(path, sessionLimit)
	if err != nil {
		return nil
	}
	var session struct {
		Conversation string `json:"sessionId"`
		Status       string `json:"status"`
		WaitingFor   string `json:"waitingFor"`
		Since        int64  `json:"statusUpdatedAt"`
	}
	// A file that is being written cannot be parsed; it is read again after the write.
	if !agent.Lenient(data, &session) || session.Status == "" {
		return nil
	}
	if s.Conversation != "" && session.Conversation != s.Conversation {
		return nil // left behind by an older process of the same number
	}
	e := agency.Evidence{Event: session.Status + " " + strconv.FormatInt(session.Since, 10)}
	if s.Sources[agency.FromSession].Event == e.Event {
		return nil
	}
	if session.Status != "waiting" && s.AskedAfter(session.Since) {
		return nil // it was so before the newest request; the next write shows that it waits
	}
	switch session.Status {
	case "idle":
		if s.Turn == agency.TurnWorking && s.TurnAt.UnixMilli() > session.Since {
			return nil // it was at rest before the newest known turn began
		}
		e.Signal = agency.SignalResting
	case "busy":
		if s.Turn == agency.TurnEnded && s.TurnAt.UnixMilli() >= session.Since {
			return nil // the turn was over before the file showed it
		}
		e.Signal = agency.SignalBusy
	case "waiting":
		e.Signal, e.Kind, e.Text = agency.SignalAsked, agency.AsksQuestion, session.WaitingFor
		if strings.Contains(session.WaitingFor, "permission") {
			e.Kind = agency.AsksPermission
		}
	default:
		e.Signal = agency.SignalUnknown
	}
	return []agency.Evidence{e}
}

// The events of a transcript that the next read needs.
const (
	called    = "api-request"
	answered  = "assistant "
	interrupt = "[Request interrupted by user"
)

// transcript reads the lines that were added to the conversation. Their evidence about the turn
// counts only when nothing came after it: hooks report that sooner.
func transcript(path string, s *agency.AgentState) []agency.Evidence {
	lines, next := agent.Tail(path, s.TranscriptOffset)
	if next == s.TranscriptOffset {
		return nil
	}
	var evidence []agency.Evidence
	var last agency.Signal
	event := s.Sources[agency.FromTranscript].Event
	for line := range bytes.Lines(lines) {
		var l entry
		if !agent.Lenient(line, &l) || l.Sidechain {
			continue
		}
		switch {
		case l.Type == "assistant":
			last = ""
			// Every part of an answer has the usage of the answer so far, also after the result of
			// a tool that an earlier part called.
			if l.Message.Usage == nil || l.Error != "" {
				continue
			}
			event = answered + l.Message.ID
			used := agency.NewUsage(l.Message.Usage.of(l.Message.Model))
			used.Estimated = true // subagents have their own transcripts
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalUsage, Event: event, ID: l.Message.ID, Usage: used, Add: true})
		case l.Type == called && strings.HasPrefix(l.Source, "repl_main_thread"):
			// A second call without an answer to the first is the only trace of an error that is
			// not final.
			if last = agency.SignalUsage; event == called {
				last = agency.SignalRetrying
			}
			event = called
		case l.Type == "user":
			last, event = "", "user"
			if len(l.Message.Content) > 0 && strings.HasPrefix(l.Message.Content[0].Text, interrupt) {
				last = agency.SignalInterrupted
			}
		}
	}
	if event == s.Sources[agency.FromTranscript].Event && last == "" && len(lines) < tailStep {
		return nil // not worth a line of evidence; it is read again with what follows
	}
	end := agency.Evidence{Signal: agency.SignalUsage, Event: event, Offset: next} // how far it was read
	switch {
	case last == agency.SignalInterrupted:
		end.Signal = last
	case last == agency.SignalRetrying && s.Turn == agency.TurnWorking:
		end.Signal, end.Class, end.Text = last, agency.ErrorOther, "the model did not answer"
	}
	return append(evidence, end)
}
