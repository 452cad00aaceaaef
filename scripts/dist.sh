#!/bin/sh
# dist.sh VERSION: makes in dist/ what a release has: for each system an archive with the program and
# its manual pages and completions, Debian packages, the list of modules as SPDX, and checksums. The same commit gives the same bytes.
set -eu
version=$1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 LC_ALL=C TZ=UTC
rm -rf dist
mkdir -p dist/work/completions
flags="-s -w -X main.version=$version"
go build -trimpath -buildvcs=true -ldflags "$flags" -o dist/work/agency ./cmd/agency
dist/work/agency docs man dist/work/man >/dev/null
gzip -9n dist/work/man/*
for shell in bash zsh fish; do dist/work/agency completion "$shell" > "dist/work/completions/agency.$shell"; done

# spdx PROGRAM: the modules that a program is built from.
spdx() {
    printf 'SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\nSPDXID: SPDXRef-DOCUMENT\nDocumentName: %s\n' "$2"
    printf 'DocumentNamespace: https://spdx.org/spdxdocs/%s-%s\nCreator: Tool: go\n' "$2" "$version"
    printf 'Created: %s\n' "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
    go version -m "$1" | awk '$1 == "dep" {
        printf "\nPackageName: %s\nSPDXID: SPDXRef-%d\nPackageVersion: %s\nPackageDownloadLocation: NOASSERTION\nFilesAnalyzed: false\n", $2, ++n, $3
        printf "ExternalRef: PACKAGE-MANAGER purl pkg:golang/%s@%s\n", $2, $3
    }'
}

for system in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
    os=${system%/*} arch=${system#*/}
    name=agency_${version}_${os}_${arch}
    mkdir -p "dist/work/$name"
    GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=true -ldflags "$flags" -o "dist/work/$name/agency" ./cmd/agency
    cp -R README.md CHANGELOG.md LICENSE dist/work/completions dist/work/man "dist/work/$name/"
    chmod -R u=rwX,go=rX "dist/work/$name"
    find "dist/work/$name" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
    tar -C dist/work --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n > "dist/$name.tar.gz"
    spdx "dist/work/$name/agency" "$name" > "dist/$name.spdx"
    if [ "$os" = linux ]; then
        ARCH=$arch VERSION=$version FOLDER=dist/work/$name go tool -modfile=tools/go.mod nfpm package --config scripts/nfpm.yaml --packager deb --target "dist/$name.deb" >&2
    fi
done
rm -rf dist/work
(cd dist && sha256sum -- * > SHA256SUMS)
ls -1 dist
