package sandbox

import (
	"context"
	"time"

	"agency"
	"agency/internal/docker"
)

// buildTime is how long an image may take to build.
const buildTime = 30 * time.Minute

// BuildImage returns an image of the engine that an environment names. If the engine does not have the
// image, BuildImage builds it from the files that pack packs. E_SANDBOX_UNAVAILABLE: it cannot be built.
func (h *Host) BuildImage(ctx context.Context, env agency.Environ, b *agency.ImageBuild, pack func() ([]byte, error)) (*agency.Image, error) {
	client, err := h.engine(ctx, env)
	if err != nil {
		return nil, err
	}
	_, err = client.Image(ctx, b.Name)
	if err != nil && !docker.Missing(err) {
		return nil, err
	}
	if err != nil {
		if b.Context, err = pack(); err != nil {
			return nil, err
		}
		building, cancel := context.WithTimeout(ctx, buildTime)
		defer cancel()
		if err := client.Build(building, b); err != nil {
			return nil, agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level container: the image of %s could not be built: %w", b.Of, err).
				WithHint("mend it, or name an image in %s: [sandbox] image = \"...\"", agency.ProjectFile)
		}
	}
	return checkImage(ctx, client, b.Name)
}
