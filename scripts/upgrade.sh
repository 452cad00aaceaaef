#!/bin/sh
# upgrade.sh COMMIT: builds COMMIT in a folder of its own, and moves its runs to this version and back.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git archive "$1" | tar -x -C "$folder"
(cd "$folder" && CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$(git -C "$OLDPWD" rev-parse --short "$1")" -o before ./cmd/agency)
# An older program cannot read the record of a newer one with more migrations, and says so.
record=same
git diff --quiet "$1" -- internal/sqlite/migrations || record=older
AGENCY_BEFORE="$folder/before" AGENCY_BEFORE_RECORD=$record go test -count=1 -run 'TestUpgrade|TestScripts/everyday_upgrade$' ./test/script
