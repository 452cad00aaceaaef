package harness

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
	"agency/internal/file"
)

// Limits of what is read of Claude Code's own files, in bytes.
const (
	claudeSessionLimit = 64 << 10
	claudeTailLimit    = 4 << 20 // of a transcript at a time
	claudeTailStep     = 256 << 10
)

// claudeFiles are the session file, which says what the program does at the moment, and the transcript. Both are found by the
// path of the transcript, CONFIG/projects/FOLDER/ID.jsonl. Without a terminal the stream tells all that they would.
func claudeFiles(s *agency.Situation, runner *agency.Process) []string {
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

// claudeReadFile reads what is new in one of these.
func claudeReadFile(path string, s *agency.Situation) []agency.Evidence {
	if _, streams := s.Sources[agency.FromStream]; streams {
		return nil
	}
	evidence, source := []agency.Evidence(nil), agency.FromTranscript
	if filepath.Ext(path) == ".json" {
		evidence, source = claudeSession(path, s), agency.FromSession
	} else {
		evidence = claudeTranscript(path, s)
	}
	for i := range evidence {
		evidence[i].Source = source
	}
	return evidence
}

// claudeSession reads the session file. It is silent about a state that was seen already: each has a time of its own.
func claudeSession(path string, s *agency.Situation) []agency.Evidence {
	data, err := file.ReadRegular(path, claudeSessionLimit)
	if err != nil {
		return nil
	}
	var session struct {
		Conversation string `json:"sessionId"`
		Status       string `json:"status"`
		WaitingFor   string `json:"waitingFor"`
		Since        int64  `json:"statusUpdatedAt"`
	}
	// A file that is being written cannot be read, and is read again when it was.
	if !lenient(data, &session) || session.Status == "" {
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
		return nil // it was so before the newest request, and will tell that it waits
	}
	switch session.Status {
	case "idle":
		if s.Turn == agency.TurnWorking && s.TurnAt.UnixMilli() > session.Since {
			return nil // it was at rest before the turn that is known by now began
		}
		e.Sign = agency.SignResting
	case "busy":
		if s.Turn == agency.TurnEnded && s.TurnAt.UnixMilli() >= session.Since {
			return nil // the turn was over before the file said so
		}
		e.Sign = agency.SignBusy
	case "waiting":
		e.Sign, e.Kind, e.Text = agency.SignAsked, agency.AsksQuestion, session.WaitingFor
		if strings.Contains(session.WaitingFor, "permission") {
			e.Kind = agency.AsksPermission
		}
	default:
		e.Sign = agency.SignUnknown
	}
	return []agency.Evidence{e}
}

// The events of a transcript that the next reading has to know.
const (
	claudeCalled    = "api-request"
	claudeAnswered  = "assistant "
	claudeInterrupt = "[Request interrupted by user"
)

// claudeTranscript reads the lines that were added to the conversation. What they say about the turn counts only when
// nothing came after it: hooks tell that sooner.
func claudeTranscript(path string, s *agency.Situation) []agency.Evidence {
	lines, next := claudeTail(path, s.TranscriptOffset)
	if next == s.TranscriptOffset {
		return nil
	}
	var evidence []agency.Evidence
	var last agency.Sign
	event := s.Sources[agency.FromTranscript].Event
	for line := range bytes.Lines(lines) {
		var l claudeLine
		if !lenient(line, &l) || l.Sidechain {
			continue
		}
		switch {
		case l.Type == "assistant":
			last = ""
			// Every part of an answer comes with the usage of it so far, also after the result of a tool that an earlier part called.
			if l.Message.Usage == nil || l.Error != "" {
				continue
			}
			event = claudeAnswered + l.Message.ID
			used := agency.NewUsage(l.Message.Usage.of(l.Message.Model))
			used.Estimated = true // helpers have transcripts of their own
			evidence = append(evidence, agency.Evidence{Sign: agency.SignUsage, Event: event, ID: l.Message.ID, Usage: used, Add: true})
		case l.Type == claudeCalled && strings.HasPrefix(l.Source, "repl_main_thread"):
			// A second call without an answer to the first is the only trace of an error that is not final.
			if last = agency.SignUsage; event == claudeCalled {
				last = agency.SignRetrying
			}
			event = claudeCalled
		case l.Type == "user":
			last, event = "", "user"
			if len(l.Message.Content) > 0 && strings.HasPrefix(l.Message.Content[0].Text, claudeInterrupt) {
				last = agency.SignInterrupted
			}
		}
	}
	if event == s.Sources[agency.FromTranscript].Event && last == "" && len(lines) < claudeTailStep {
		return nil // not worth a line of evidence; it is read again with what follows
	}
	end := agency.Evidence{Sign: agency.SignUsage, Event: event, Offset: next} // how far it was read
	switch {
	case last == agency.SignInterrupted:
		end.Sign = last
	case last == agency.SignRetrying && s.Turn == agency.TurnWorking:
		end.Sign, end.Class, end.Text = last, agency.ErrorOther, "the model did not answer"
	}
	return append(evidence, end)
}

// claudeTail reads the complete lines behind offset, and where they end. A file that became shorter is another one, and
// read from its end.
func claudeTail(path string, offset int64) (lines []byte, next int64) {
	f, err := file.OpenRegular(path)
	if err != nil {
		return nil, offset
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == offset {
		return nil, offset
	}
	if info.Size() < offset {
		return nil, info.Size()
	}
	lines, err = io.ReadAll(io.NewSectionReader(f, offset, min(info.Size()-offset, claudeTailLimit)))
	if err != nil {
		return nil, offset
	}
	if end := bytes.LastIndexByte(lines, '\n') + 1; end > 0 || len(lines) < claudeTailLimit {
		return lines[:end], offset + int64(end)
	}
	return nil, offset + claudeTailLimit // a line without an end is skipped piece by piece
}
