package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/protocol"
)

// Times of a conversation in an agent's own protocol.
const (
	wireRescan = 2 * time.Second        // between looks at the wire, in case that the kernel missed a write
	wireActive = 5 * time.Millisecond   // likewise without a watcher, while the agent is about to write
	wireRest   = 100 * time.Millisecond // likewise, while the agent rests, or waits for an answer
	takenLimit = 5 * time.Second        // for the agent to acknowledge what was said
	roomLimit  = 10 * time.Second       // for the agent to read what was written before
	helloSpan  = 60 * time.Second       // for its program to answer at all
)

const (
	fifoFile   = "in.fifo"
	wireBuffer = 64 << 10
	// refusalRoom is more than the largest refusal.
	refusalRoom = 4 << 10
	wireStep    = 1 << 20 // how much is read before other goroutines get the lock
	// journalLimit is how much of an intent file is read: what was said to an agent in its life.
	journalLimit = 256 << 20
)

// Speaker is what the program gives a wrapper for a runner in the mode protocol.
type Speaker struct {
	Dialect *protocol.Dialect
	// Keep adds to the evidence of the attempt, and Kept returns the largest Offset in it.
	Keep func([]agency.Evidence)
	Kept func() int64
}

// speech speaks with a runner in its own protocol. The runner itself writes its messages into a file, the
// wire, and reads those of agency from a FIFO that is never closed. So it continues without a wrapper. The
// wrapper records each message in another file, the intents, before it writes the message to the FIFO.
// From the two files the next wrapper learns all that this one knows.
type speech struct {
	launch  *agency.Launch
	out     *output
	speaker *Speaker
	input   *os.File // the FIFO
	wire    *os.File
	intents *os.File
	journal journal       // writes to intents
	over    chan struct{} // closed when the runner has ended
	done    chan struct{} // closed when the wire is read to its end
	poke    chan struct{} // holds a token when something was said
	errors  *errorOutput

	mu      sync.Mutex
	talk    *protocol.Talk
	lines   protocol.Lines
	buffer  []byte
	spoken  time.Time     // when something was last written to the agent
	offset  int64         // of the next line of the wire
	kept    int64         // up to where the evidence is kept
	settled bool          // what an earlier wrapper may not have written was said again
	rotated int64         // how long the journal was when it was last rotated
	rotates bool          // the journal is being rotated
	changed chan struct{} // closed and replaced when the talk changed
	guests  []*guest
}

// openSpeech opens the journal of an attempt, and replays what is in it after a checkpoint.
func openSpeech(launch *agency.Launch, speaker *Speaker, out *output, from *checkpoint) (*speech, error) {
	if speaker == nil || speaker.Dialect == nil {
		return nil, agency.Errorf(agency.CodeSpecInvalid, "agency does not speak a protocol of %s", launch.RunnerKind)
	}
	start := protocol.Start{Dir: launch.Dir, Resumes: launch.Resumes, Silent: launch.Opening == "", Todos: launch.Todos}
	s := &speech{
		launch: launch, out: out, speaker: speaker, talk: protocol.New(speaker.Dialect, start), over: make(chan struct{}), done: make(chan struct{}),
		poke: make(chan struct{}, 1), changed: make(chan struct{}), buffer: make([]byte, wireBuffer),
		offset: from.Wire, kept: max(from.Kept, speaker.Kept()), rotated: from.Wire + from.Intents,
	}
	// Nearly all that a wrapper allocates lives for one line. This halves what it has of its own.
	debug.SetGCPercent(50)
	if from.Talk != nil {
		if err := s.talk.Remember(from.Talk); err != nil {
			return nil, err
		}
	}
	dir, err := launch.AttemptDir, error(nil)
	if s.errors, err = openErrorOutput(archive{dir: dir, limit: launch.LogBytes}); err != nil {
		return nil, err
	}
	if s.input, err = os.OpenFile(filepath.Join(dir, fifoFile), os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err != nil {
		return nil, fmt.Errorf("open the runner's input: %w", err)
	}
	growPipe(s.input)
	if s.wire, err = file.OpenRegular(filepath.Join(dir, protocol.WireFile)); err != nil {
		return nil, fmt.Errorf("open what the runner wrote: %w", err)
	}
	intents, err := s.openIntents(filepath.Join(dir, protocol.IntentFile), from.Intents)
	if err != nil {
		return nil, fmt.Errorf("open what was said: %w", err)
	}
	if err := s.replay(intents); err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

// openIntents opens the file of the intents, and returns those after an offset.
func (s *speech) openIntents(path string, from int64) ([]protocol.Intent, error) {
	var err error
	if s.intents, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.NewSectionReader(s.intents, from, journalLimit))
	// A line that was cut off was never written to the agent.
	s.journal = journal{to: s.intents, torn: len(data) > 0 && data[len(data)-1] != '\n'}
	return protocol.ParseIntents(data), err
}

// replay reads the journal so far. It reads the wire up to the place of each intent before it takes the
// intent.
func (s *speech) replay(intents []protocol.Intent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range intents {
		if err := s.readTo(i.Wire); err != nil {
			return err
		}
		s.show(s.talk.Intend(i))
	}
	return s.readTo(-1) // what the runner wrote may prove that it got the last intents
}

// run reads the wire until the runner has ended and all is read.
func (s *speech) run() {
	defer close(s.done)
	events, watched := s.watch()
	if watched != nil {
		defer func() { _ = watched.Close() }()
	}
	for {
		over := s.ended()
		s.mu.Lock()
		before := s.read()
		err := s.readTo(before + wireStep) // others wait for the lock
		s.refuse()
		s.rotateWhenDue()
		came, every := s.read() != before, wireRest
		if s.talk.AtWork() || !s.talk.Greeted() || came || time.Since(s.spoken) < takenLimit {
			every = wireActive
		}
		if watched != nil {
			every = wireRescan
		}
		s.mu.Unlock()
		s.errors.bound()
		switch {
		case over && !came || err != nil:
			return
		case came:
			continue // the wire may have more
		}
		select {
		case <-events:
		case <-time.After(every):
		case <-s.poke:
		case <-s.over:
		}
	}
}

// watch returns a channel with an event for each write of the runner. The watcher is nil when the user's
// programs hold all watchers that the kernel gives.
func (s *speech) watch() (<-chan fsnotify.Event, *fsnotify.Watcher) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil
	}
	if err := watcher.Add(s.wire.Name()); err != nil {
		_ = watcher.Close()
		return nil, nil
	}
	return watcher.Events, watcher
}

// readTo reads the wire up to an offset, or, if that is negative, to its present end. The caller
// holds the lock.
func (s *speech) readTo(end int64) error {
	at, buffer := s.read(), s.buffer[:]
	for end < 0 || at < end {
		part := buffer
		if end >= 0 {
			part = buffer[:min(int64(len(buffer)), end-at)]
		}
		n, err := s.wire.ReadAt(part, at)
		at += int64(n)
		s.hear(part[:n])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read what the runner wrote: %w", err)
		}
	}
	return nil
}

// read returns how much of the wire is read. The caller holds the lock.
func (s *speech) read() int64 { return s.offset + int64(s.lines.Pending()) }

// hear reads new bytes of the wire: it keeps the evidence in them, shows their text, and passes them on to
// guests. The caller holds the lock.
func (s *speech) hear(p []byte) {
	var evidence []agency.Evidence
	s.lines.Add(p, func(line []byte, length int) {
		h := s.talk.Hear(line)
		s.tell(line)
		s.offset += int64(length)
		s.show(h.Text)
		for _, e := range h.Evidence {
			if e.Offset = s.offset; e.Offset > s.kept {
				evidence = append(evidence, e)
			}
		}
	})
	if len(p) == 0 {
		return
	}
	s.out.last.Store(killpoint.Now().UnixNano())
	if len(evidence) > 0 {
		s.speaker.Keep(evidence)
		s.kept = s.offset
		killpoint.At("speech.kept")
	}
	s.notify()
}

// notify wakes what waits for a change of the talk. The caller holds the lock.
func (s *speech) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// show shows a text of the conversation in the readable log and in the pane.
func (s *speech) show(text string) {
	if text == "" {
		return
	}
	s.out.take([]byte(text), func(p []byte) {
		s.out.logs.write(nil, p)
		s.out.pane.show(p)
	})
}

// begin says again what an earlier wrapper may not have written, and then what begins the conversation,
// as far as it was not said. It returns why no conversation can begin, or nil.
func (s *speech) begin() *agency.EndNote {
	err := errors.Join(s.repeat(), s.greet())
	if err == nil && !s.await(helloSpan, func() bool { return s.talk.Greeted() || s.talk.Refused() != "" }) {
		err = fmt.Errorf("the agent does not speak %s: it did not answer for %s; its version may be too old or too new for the mode protocol, and --mode terminal works",
			s.speaker.Dialect.Name, duration.Text(helloSpan))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code := agency.CodeRunnerStartFailed
	if why := s.talk.Refused(); err == nil && why != "" {
		err = fmt.Errorf("the agent did not begin the conversation: %s", why)
		if s.launch.Resumes != "" {
			code = agency.CodeConversationLost
		}
	}
	if x := s.opening(); err == nil && x.Text != "" && !s.talk.Forgot() && !s.talk.Knows(x) {
		err = s.intend(x)
	}
	if err != nil {
		return &agency.EndNote{Code: code, Words: err.Error()}
	}
	return nil
}

// greet says what begins a conversation, unless it was said. From then on, agency may say anything else.
func (s *speech) greet() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = true
	s.notify()
	if s.talk.Greeted() || s.talk.Knows(protocol.Hello()) {
		return nil
	}
	return s.intend(protocol.Hello())
}

// repeat says again what an earlier wrapper may not have written.
func (s *speech) repeat() error {
	s.mu.Lock()
	unproven := s.talk.Unproven()
	s.mu.Unlock()
	if len(unproven) == 0 {
		return nil
	}
	// The program replies in order. What it has not mentioned by its second reply was never written to it.
	for range 2 {
		s.mu.Lock()
		look, ok := s.talk.Look(uuid.NewString())
		var err error
		if ok {
			err = s.intend(look)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if ok && !s.await(helloSpan, func() bool { return s.talk.Progress(look).Over }) {
			return errors.New("it did not answer")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, i := range s.talk.Unproven() {
		err = errors.Join(err, s.write([]byte(i.Frame)))
	}
	return err
}

// opening returns the first message of the attempt. Its id is the same in every wrapper.
func (s *speech) opening() agency.Saying {
	id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "agency:%s/%d", s.launch.RunID, s.launch.Attempt)).String()
	return agency.Saying{Kind: agency.SaysMessage, ID: id, Text: s.launch.Opening, Files: s.launch.OpeningFiles, By: "agency"}
}

// intend says something. The caller holds the lock.
func (s *speech) intend(x agency.Saying) error {
	frame, err := s.talk.Frame(x)
	if err != nil {
		return err
	}
	if err := s.room(len(frame), roomLimit); err != nil {
		return err
	}
	return s.utter(x, frame)
}

// utter records what is about to be said, and writes it: there is room for the frame. The caller holds
// the lock.
func (s *speech) utter(x agency.Saying, frame []byte) error {
	intent := protocol.Intent{At: killpoint.Now().UTC(), Saying: x, Frame: string(frame), Wire: s.offset}
	line, err := json.Marshal(intent)
	if err == nil {
		err = s.journal.add(line)
	}
	if err != nil {
		return fmt.Errorf("record what is said to the agent: %w", err)
	}
	killpoint.At("speech.intended")
	s.show(s.talk.Intend(intent))
	err = s.write(frame)
	killpoint.At("speech.written")
	return err
}

// write writes one frame with its line end. There is room for it, so the kernel takes it whole.
func (s *speech) write(frame []byte) error {
	if n := len(frame); n == 0 || frame[n-1] != '\n' {
		frame = append(slices.Clone(frame), '\n')
	}
	if err := s.room(len(frame), roomLimit); err != nil {
		return err
	}
	if _, err := s.input.Write(frame); err != nil {
		return fmt.Errorf("write to the agent: %w", err)
	}
	s.spoken = time.Now()
	wake(s.poke)
	return nil
}

// refuse tells the agent which of its requests agency does not know, as long as its input has room. The
// caller holds the lock.
func (s *speech) refuse() {
	if !s.settled {
		return
	}
	for _, x := range s.talk.Refusals() {
		if s.room(refusalRoom, 0) != nil || s.intend(x) != nil {
			return // the next turn of run says it again
		}
	}
}

// room waits until the FIFO has room for a whole frame, at most for limit. Otherwise a wrapper that is
// killed while it writes could leave half a frame there, which would end the agent.
func (s *speech) room(size int, limit time.Duration) error {
	total := pipeSize(s.input)
	if size > total {
		return agency.Errorf(agency.CodeInputRefused, "the message has %d bytes as the agent gets it, more than the %d that it can be given at once", size, total).
			WithHint("put the material into a file of the worktree and name it in the message")
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		waiting, err := unix.IoctlGetInt(int(s.input.Fd()), getUnread)
		switch {
		case err != nil:
			return fmt.Errorf("look at the agent's input: %w", err)
		case waiting+size <= total:
			return nil
		case time.Since(begin) >= limit:
			return agency.Errorf(agency.CodeInputRefused, "the agent of %s does not read its input", s.launch.RunID).WithHint("agency show %s", s.launch.RunID)
		}
	}
}

// await waits until ok returns true, under the lock. It returns false after limit, and when the
// runner has ended before.
func (s *speech) await(limit time.Duration, ok func() bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		s.mu.Lock()
		fine, changed := ok(), s.changed
		s.mu.Unlock()
		if fine {
			return true
		}
		select {
		case <-changed:
		case <-s.done:
			s.mu.Lock()
			defer s.mu.Unlock()
			return ok()
		case <-late.C:
			return false
		}
	}
}

// opened reports whether the first message of the attempt was said, if it has one, and all that an earlier
// wrapper may not have written. Nothing else may be said before that. The caller holds the lock.
func (s *speech) opened() bool {
	return s.settled && s.talk.Greeted() && (s.launch.Opening == "" || s.talk.Forgot() || s.talk.Knows(s.opening()))
}

// ended reports whether the runner has ended.
func (s *speech) ended() bool { return closed(s.over) }

// finish reads the rest of the wire after the runner has ended, and makes all guests leave.
func (s *speech) finish() {
	close(s.over)
	select {
	case <-s.done:
	case <-time.After(drainLimit):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.guests {
		g.leave()
	}
}

// say says something to the runner in its own protocol, and waits until the runner acknowledges it. It
// says nothing twice with the same id.
func (s *speech) say(x *agency.Saying) (agency.Delivery, error) {
	none := agency.Delivery{Effect: agency.EffectNone}
	switch {
	case x == nil:
		return none, agency.Errorf(agency.CodeInputRefused, "the request has nothing to say")
	case s.ended():
		return none, endedError(s.launch.RunID)
	case x.Kind == agency.SaysMessage:
		if err := checkInput(x.Text); err != nil {
			return none, err
		}
	}
	if !s.await(takenLimit, s.opened) && !s.ended() {
		return none, startingError(agency.CodeInputRefused, s.launch.RunID)
	}
	s.mu.Lock()
	var err error
	if !s.talk.Knows(*x) {
		err = s.intend(*x)
	}
	s.mu.Unlock()
	if err != nil {
		return none, err
	}
	var got protocol.Progress
	s.await(takenLimit, func() bool { got = s.talk.Progress(*x); return got.Taken || got.Over })
	delivery := agency.Delivery{Effect: agency.EffectWritten, Queued: len(got.Queued)}
	switch {
	case got.Failed != "":
		return none, agency.Errorf(agency.CodeInputRefused, "the agent of %s refused it: %s", s.launch.RunID, got.Failed)
	case got.Taken:
		delivery.Confirmed, delivery.Effect = true, agency.EffectTaken
	case got.Over:
		return none, agency.Errorf(agency.CodeInvalidState, "the agent of %s withdrew what it asked before it took the answer", s.launch.RunID)
	case s.ended():
		return none, endedError(s.launch.RunID)
	}
	return delivery, nil
}
