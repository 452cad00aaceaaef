package supervisor

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"agency"
	"agency/internal/file"
	"agency/internal/supervisor/keyed"
)

// images finds and builds the images of runs in containers.
type images struct {
	projects *Projects
	git      Git
	sandbox  Sandbox
	building keyed.Locks // by the name of the image
}

// ParseDevcontainer parses a devcontainer.json, which error messages name by path.
type ParseDevcontainer func(path string, data []byte) (*agency.Devcontainer, error)

// devcontainer is a repository's devcontainer.json and its bytes.
type devcontainer struct {
	agency.Devcontainer

	data []byte
}

// devcontainer reads the devcontainer.json of a repository where its agency.toml is read; nil when
// there is none.
func (ps *Projects) devcontainer(ctx context.Context, repo agency.Repo, commit string) (*devcontainer, error) {
	read := ps.inCommit(ctx, repo, commit)
	if repo.Toplevel != "" {
		read = inWorktree(repo.Toplevel)
	}
	data, found, err := read(agency.DevcontainerFile)
	if err != nil {
		return nil, agency.Errorf(agency.CodeConfigInvalid, "%s of %s cannot be read: %w", agency.DevcontainerFile, repo.Root, err).
			WithHint("it must be a regular file of at most %d bytes, not a link; or name an image in %s: [sandbox] image = \"...\"", setupFileLimit, agency.ProjectFile)
	}
	if !found {
		return nil, nil
	}
	d, err := ps.parseDevcontainer(filepath.Join(repo.Toplevel, agency.DevcontainerFile), data)
	if err != nil {
		return nil, err
	}
	return &devcontainer{*d, data}, nil
}

// choose gives a run in a container its image, and builds that where the repository says how. The
// first of these decides: the spec, agency.toml, devcontainer.json, and the user's configuration.
func (im *images) choose(ctx context.Context, p *NewRun, commit string) error {
	if p.Spec.Sandbox != agency.SandboxContainer {
		return nil
	}
	if p.AskedBy != nil {
		return im.chooseInside(ctx, p)
	}
	p.ports = agency.NewPorts(p.project.Ports)
	from := "the spec"
	if p.Spec.Image == "" {
		p.Spec.Image, from = p.project.Image, agency.ProjectFile
	}
	if p.Spec.Image == "" {
		d, err := im.projects.devcontainer(ctx, p.repo, commit)
		if err != nil {
			return err
		}
		p.Spec.Image, from = p.Settings.Image, "your configuration"
		if d != nil {
			for _, key := range d.Ignored {
				p.warn(fmt.Sprintf("agency does not follow %s of %s", key, agency.DevcontainerFile))
			}
			if d.Dockerfile != "" {
				return im.build(ctx, p, commit, d)
			}
			p.Spec.Image, from = d.Image, agency.DevcontainerFile
		}
	}
	var err error
	if p.image, err = im.sandbox.CheckImage(ctx, p.Env, p.Spec.Image); err != nil {
		if from == agency.DevcontainerFile {
			e := agency.AsError(err)
			e.Message = from + ": " + e.Message
			return e
		}
		return err
	}
	p.image.From = from
	return nil
}

// wants adds the image to what the user is asked to trust. It returns the Dockerfile, and the hash of
// the files that define the image.
func (d *devcontainer) wants(t *agency.SetupTrust, p projectFile, read reading) (hash string, dockerfile []byte, err error) {
	dockerfile, found, err := read(d.Dockerfile)
	if err == nil && !found {
		err = errors.New("it is not in the commit that the run starts from")
	}
	if err != nil {
		return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s names %s, which cannot be used: %w", agency.DevcontainerFile, d.Dockerfile, err).
			WithHint("it must be a committed regular file of at most %d bytes, not a link; or name an image in %s: [sandbox] image = \"...\"", setupFileLimit, agency.ProjectFile)
	}
	files := []agency.SetupFile{{Path: agency.DevcontainerFile, Content: string(d.data)}, {Path: d.Dockerfile, Content: string(dockerfile)}}
	t.Image = d.Dockerfile
	t.Files = append(t.Files, files...)
	t.Hash = trustHash(p.data, t.Files)
	return trustHash(p.data, files), dockerfile, nil
}

// addImage adds the image that runs in containers would have to what the user is asked to trust, if
// it is built. It returns the hashes that are then trusted one by one. A problem with the image is
// reported when a run needs the image.
func (ps *Projects) addImage(ctx context.Context, t *agency.SetupTrust, repo agency.Repo, commit string, p projectFile, read reading, hashes []string) []string {
	if p.Image != "" {
		return hashes
	}
	d, err := ps.devcontainer(ctx, repo, commit)
	if err != nil || d == nil || d.Dockerfile == "" {
		return hashes
	}
	if hash, _, err := d.wants(t, p, read); err == nil {
		hashes = append(hashes, hash)
	}
	return hashes
}

// trustedDockerfile returns the Dockerfile from which a repository wants an image to be built, if the
// user trusts it. again is the command that shows it and allows it.
func (ps *Projects) trustedDockerfile(ctx context.Context, repo agency.Repo, commit string, d *devcontainer, p projectFile, again string) ([]byte, error) {
	var t agency.SetupTrust
	hash, dockerfile, err := d.wants(&t, p, ps.inCommit(ctx, repo, commit))
	if err != nil {
		return nil, err
	}
	if err := ps.decide(ctx, repo, &t, hash); err != nil {
		return nil, err
	}
	if !t.Trusted {
		return nil, agency.Errorf(agency.CodeTrustRequired, "for containers the repository wants to build an image of %s, which is not trusted", d.Dockerfile).
			WithHint("look: %s --show; allow it: %s; go without: name an image in %s: [sandbox] image = \"...\"", again, again, agency.ProjectFile).
			WithDetail("hash", t.Hash).WithDetail("image", t.Image).WithDetail("files", t.Files)
	}
	return dockerfile, nil
}

// checkImage returns the error with which a run in a container that names no image would be refused:
// the image that the repository wants to be built is not trusted, or cannot be built.
func (ps *Projects) checkImage(ctx context.Context, repo agency.Repo, commit string, p projectFile, again string) error {
	d, err := ps.devcontainer(ctx, repo, commit)
	if err == nil && d != nil && d.Dockerfile != "" {
		_, err = ps.trustedDockerfile(ctx, repo, commit, d, p, again)
	}
	return err
}

// build gives a run the image that its repository wants to be built, if the user trusts that.
func (im *images) build(ctx context.Context, p *NewRun, commit string, d *devcontainer) error {
	dockerfile, err := im.projects.trustedDockerfile(ctx, p.repo, commit, d, p.project, trustCommand(p.Spec.BaseRef, p.project.Base))
	if err != nil {
		return err
	}
	tree, err := im.git.Folder(ctx, p.repo, commit, d.Context)
	if err == nil && tree == "" {
		err = agency.Errorf(agency.CodeConfigInvalid, "%s names the folder %s, which is not in the commit %.12s", agency.DevcontainerFile, d.Context, commit).
			WithHint("commit it, or mend build.context")
	}
	if err != nil {
		return err
	}
	b := &agency.ImageBuild{Of: d.Dockerfile, Dockerfile: builtFrom, Target: d.Target, Args: d.Args}
	content, err := json.Marshal([]any{tree, dockerfile, d.Target, d.Args})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	b.Name = agency.BuiltImages + hex.EncodeToString(sum[:8])
	unlock, err := im.building.Lock(ctx, b.Name)
	if err != nil {
		return err
	}
	defer unlock()
	p.image, err = im.sandbox.BuildImage(ctx, p.Env, b, func() ([]byte, error) { return im.packContext(ctx, p.repo, tree, dockerfile, d) })
	if err == nil {
		p.Spec.Image, p.image.From = b.Name, d.Dockerfile
	}
	return err
}

const (
	builtFrom    = ".agency.Dockerfile" // the name of the Dockerfile among the files that an image is built from
	contextLimit = 64 << 20             // the most that these may hold, in bytes
)

// packContext returns the files that an image is built from, with the Dockerfile that is trusted.
func (im *images) packContext(ctx context.Context, repo agency.Repo, tree string, dockerfile []byte, d *devcontainer) ([]byte, error) {
	refuse := func(format string, args ...any) error {
		return agency.Errorf(agency.CodeConfigInvalid, "the folder %s, of which %s builds an image: "+format, append([]any{d.Context, agency.DevcontainerFile}, args...)...).
			WithHint("name a folder that has what the Dockerfile needs, as build.context")
	}
	data, err := im.git.Archive(ctx, repo, tree, contextLimit)
	if errors.Is(err, file.ErrTooLarge) {
		return nil, refuse("its files have more than %d bytes", contextLimit)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for from := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		leadsTo := filepath.Join(filepath.Dir(h.Name), h.Linkname) //nolint:gosec // nothing is written there
		if h.Typeflag == tar.TypeSymlink && (filepath.IsAbs(h.Linkname) || !filepath.IsLocal(leadsTo)) {
			return nil, refuse("the link %s leads out of it", h.Name)
		}
		if err := to.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, from); err != nil { //nolint:gosec // the archive is in memory
			return nil, err
		}
	}
	err = to.WriteHeader(&tar.Header{Name: builtFrom, Mode: 0o644, Size: int64(len(dockerfile))})
	if err == nil {
		_, err = to.Write(dockerfile)
	}
	err = errors.Join(err, to.Close())
	return out.Bytes(), err
}
