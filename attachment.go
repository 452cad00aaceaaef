package agency

import (
	"path"
	"strings"
	"unicode"
)

// AttachmentsLimit is the most bytes that the files attached to one message may have together.
const AttachmentsLimit = 16 << 20

// mostAttachments is how many files may be attached to a message.
const mostAttachments = 32

// attachmentNameLimit is the longest name that an attached file gets in the worktree, in bytes.
const attachmentNameLimit = 120

// Attachment is a file that comes with a message to an agent.
type Attachment struct {
	Name    string `json:"name"`    // of the file, without a folder
	Content []byte `json:"content"` // all of it
}

// PlainName returns the name of the file in the worktree of the agent: letters, digits, dots and
// dashes, which read the same in a message, a shell and a link.
func (a Attachment) PlainName() string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(path.Base(a.Name), "-"))
	ext := path.Ext(plain)
	base := strings.Trim(strings.TrimSuffix(plain, ext), "-.")
	if len(base)+len(ext) > attachmentNameLimit {
		ext = ext[:min(len(ext), attachmentNameLimit/2)]
		base = base[:min(len(base), attachmentNameLimit-len(ext))]
	}
	if base == "" {
		base = "file"
	}
	return strings.ToValidUTF8(base+strings.TrimRight(ext, "."), "")
}

// CheckAttachments returns an error with CodeUsage when files are too many, or too large together.
func CheckAttachments(files []Attachment) error {
	if len(files) > mostAttachments {
		return Errorf(CodeUsage, "%d files are attached; the most is %d", len(files), mostAttachments).
			WithHint("attach an archive of them")
	}
	size := 0
	for _, f := range files {
		size += len(f.Content)
	}
	if size > AttachmentsLimit {
		return Errorf(CodeUsage, "the attached files have more than %d MiB together", AttachmentsLimit>>20).
			WithHint("name their paths in the text instead; an agent in a sandbox reads only what is in its worktree")
	}
	return nil
}
