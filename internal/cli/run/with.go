package run

import (
	"io"
	"path/filepath"

	"agency"
	"agency/internal/cli/command"
)

const withUsage = "copy a `FILE`, such as a picture, into the worktree for the agent (repeatable)"

// attachments reads the files that come with a message.
func attachments(d *command.Deps, paths []string) ([]agency.Attachment, error) {
	files, size := make([]agency.Attachment, 0, len(paths)), 0
	for _, path := range paths {
		if path == "" {
			return nil, agency.Errorf(agency.CodeUsage, "--with is empty").WithHint("name a file: --with screen.png")
		}
		f, err := command.OpenRegular(d.Absolute(path))
		if err != nil {
			return nil, agency.Errorf(agency.CodeInvalidPath, "attach %s: %w", path, err).WithHint("%s", lookBeside(d, path))
		}
		content, err := io.ReadAll(io.LimitReader(f, int64(agency.AttachmentsLimit-size)+1))
		_ = f.Close()
		if err != nil {
			return nil, agency.Errorf(agency.CodeInvalidPath, "attach %s: %w", path, command.RootCause(err))
		}
		size += len(content)
		files = append(files, agency.Attachment{Name: filepath.Base(path), Content: content})
		if err := agency.CheckAttachments(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}
