// Package spool stores the evidence of one attempt in a file: hooks, the wrapper and the daemon
// append what they observe, and the daemon reads it. Writing needs no daemon. Its folder belongs to
// the attempt, so that late evidence of an older attempt does not reach a newer one.
package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"agency"
	"agency/internal/file"
)

// Limits of the file, in bytes.
const (
	// sizeLimit is the size from which the file takes only evidence that changes an agent's state:
	// an agent that calls tools without end must not fill the disk.
	sizeLimit = 64 << 20
	// fullLimit is the size at which the file gives all but the newest evidence back to the disk: an
	// agent that continues without end must not fill the disk with that evidence either.
	fullLimit = 128 << 20
	keptLimit = 32 << 20 // how much of it stays
	lineLimit = 128 << 10
	tailLimit = 4 << 20
)

// Append adds evidence, one line each, in one write: lines of several writers do not mix. Texts are
// cut to their limits. Anything but a regular file, such as a link or a pipe, is refused with
// file.ErrNotRegular. A file that would take more than 128 MiB keeps its newest 32 MiB: the older part
// becomes a hole, so all offsets stay valid, and Tail reports the loss. Where the file system has no holes,
// the file is started again. Append does not flush to the disk: a crash of the machine ends the attempt,
// and what matters afterwards is in the record.
func Append(path string, evidence ...agency.Evidence) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	lines, size, err := encode(f, evidence)
	if err == nil && size-holeBefore(f, size)+int64(len(lines)) > fullLimit {
		if file.Free(f, size-keptLimit) != nil {
			err = f.Truncate(0)
		}
	}
	if err == nil && len(lines) > 0 {
		_, err = f.Write(lines)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	return nil
}

// AppendBeneath adds evidence to the file rel in the folder root, which another program controls:
// it follows no link out of root. A file that would grow beyond limit bytes is started again.
// Otherwise it is as Append.
func AppendBeneath(root, rel string, limit int64, evidence ...agency.Evidence) error {
	f, err := file.AppendBeneath(root, rel, 0o644)
	if err != nil {
		return err
	}
	lines, size, err := encode(f, evidence)
	switch {
	case err != nil:
	case size+int64(len(lines)) > limit:
		err = file.WriteBeneath(root, rel, lines, 0o644)
	default:
		_, err = f.Write(lines)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", filepath.Join(root, rel), err)
	}
	return nil
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
			err = &fs.PathError{Op: "open", Path: path, Err: file.ErrNotRegular}
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: file.ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// encode returns the lines, and the size of the file. It first ends a line that a full disk cut
// off.
func encode(f *os.File, evidence []agency.Evidence) (text []byte, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	if last := make([]byte, 1); info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			lines.WriteByte('\n')
		}
	}
	full := info.Size()-holeBefore(f, info.Size()) > sizeLimit
	for i := range evidence {
		e := evidence[i]
		if full {
			if minor(&e) {
				continue
			}
			if e.Signal == agency.SignalToolEnded {
				e.Text = ""
			}
		}
		clip(&e)
		if err := enc.Encode(&e); err != nil {
			return nil, 0, err
		}
	}
	return lines.Bytes(), info.Size(), nil
}

// holeBefore returns how long the hole at the beginning of a file is; 0 without one.
func holeBefore(f *os.File, size int64) int64 {
	if size <= sizeLimit {
		return 0 // only larger files get a hole
	}
	return file.Data(f, 0)
}

// minor reports whether the state of an agent is correct without this evidence. Evidence with an offset is
// not minor: without it, a part of the agent's own file would be read again and again. The end of a tool
// that has an id is not minor either, since it ends a request about that tool.
func minor(e *agency.Evidence) bool {
	switch e.Signal {
	case agency.SignalToolStarted, agency.SignalUnknown, agency.SignalUsage, agency.SignalTodos, agency.SignalQueue:
		return e.Offset == 0
	case agency.SignalToolEnded:
		return e.Offset == 0 && e.ID == ""
	default:
		return false
	}
}

// Tail returns the evidence after offset, up to the last complete line or a few megabytes, and the
// offset to continue from. A file that became shorter is read from its beginning. In the place of
// evidence that became a hole before Tail read it, there is evidence with the event agency.EventLost. A
// line that is not evidence becomes evidence with the signal unknown, so that it is counted. A missing
// file has no evidence; anything but a regular file is file.ErrNotRegular.
func Tail(path string, offset int64) (evidence []agency.Evidence, next int64, err error) {
	f, err := file.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, offset, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, offset, err
	}
	if info.Size() < offset {
		offset = 0
	}
	if info.Size() == offset {
		return nil, offset, nil
	}
	lost := file.Data(f, offset) > offset
	offset = file.Data(f, offset)
	data, err := io.ReadAll(io.NewSectionReader(f, offset, min(info.Size()-offset, tailLimit)))
	if err != nil {
		return nil, offset, fmt.Errorf("read %s: %w", path, err)
	}
	if hole := len(data) - len(bytes.TrimLeft(data, "\x00")); hole > 0 || lost {
		// The hole may end within a line.
		cut := hole + bytes.IndexByte(data[hole:], '\n') + 1
		return []agency.Evidence{{Source: agency.FromHook, Signal: agency.SignalUnknown, Event: agency.EventLost}}, offset + int64(cut), nil
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	if end == 0 && len(data) == tailLimit {
		// A line without an end is skipped piece by piece.
		return []agency.Evidence{unreadable()}, offset + tailLimit, nil
	}
	return Parse(data[:end]), offset + int64(end), nil
}

// Parse parses lines of evidence. It never fails: a line that is not evidence becomes evidence with
// the signal unknown.
func Parse(lines []byte) []agency.Evidence {
	var evidence []agency.Evidence
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e agency.Evidence
		if len(line) > lineLimit || json.Unmarshal(line, &e) != nil || e.Source == "" || e.Signal == "" {
			e = unreadable()
		}
		clip(&e)
		evidence = append(evidence, e)
	}
	return evidence
}

func unreadable() agency.Evidence {
	return agency.Evidence{Source: agency.FromHook, Signal: agency.SignalUnknown, Event: "unreadable line"}
}

// clip cuts the texts of evidence to their limits.
func clip(e *agency.Evidence) {
	most := agency.EvidenceText
	if e.Signal == agency.SignalTurnEnded {
		most = agency.EvidenceMessage
	}
	if e.Signal == agency.SignalAsked && len(e.Text) > most { // the user must see that a request was cut
		e.Text = cut(e.Text, most-len(agency.CutMark)) + agency.CutMark
	}
	e.Text = cut(e.Text, most)
	for _, s := range []*string{&e.Event, &e.ID, &e.Tool, &e.Model, &e.PermissionMode, &e.Subagent, &e.Conversation} {
		*s = cut(*s, 200)
	}
	e.Transcript = cut(e.Transcript, 4096)
	if e.Said != nil {
		said := *e.Said
		said.ID, said.By, said.Value, said.Message = cut(said.ID, 200), cut(said.By, 200), cut(said.Value, 200), cut(said.Message, 200)
		e.Said = &said
	}
}

// cut shortens a text to at most most bytes, at a character boundary.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
