#!/bin/sh
# Checks that the import rules bite: forbidden imports, put into a copy of the tree, must each be caught.
# usage: lint-rules.sh COMMAND...    the command that runs golangci-lint
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/agency-lint.XXXXXX")
trap 'rm -rf "$copy"' EXIT
(cd "$here" && cp -R ./*.go go.mod go.sum .golangci.yml cmd docs internal tools "$copy")
cd "$copy"

# folder import; none may close a cycle, which the compiler refuses before any linter looks
rules='. os
. github.com/spf13/cobra
internal/cli agency/internal/sqlite
internal/cli agency/internal/supervisor
internal/mcp agency/internal/supervisor
internal/mcp agency/internal/config
internal/api agency/internal/git
internal/supervisor agency/internal/tmux
internal/git agency/internal/tmux
internal/cli agency/internal/scheduler
internal/cli agency/internal/watchdog
internal/spool agency/internal/git
internal/harness agency/internal/spool
internal/watchdog agency/internal/spool
internal/notify agency/internal/config
internal/file agency
internal/daemon database/sql'

echo "$rules" | while read -r folder import; do
  package=$(sed -n 's/^package \([a-z]*\)$/\1/p' "$folder"/*.go | head -n 1)
  name=$(echo "$import" | tr / _)
  printf 'package %s\n\nimport _ "%s"\n' "$package" "$import" >"$folder/forbidden_$name.go"
done
found=$("$@" run --enable-only depguard ./... 2>&1 || true)
missed=$(echo "$rules" | while read -r folder import; do
  name=$(echo "$import" | tr / _)
  echo "$found" | grep -q "forbidden_$name.go:.*depguard" || echo "  $folder imports $import"
done)
if [ -n "$missed" ]; then
  printf 'the import rules do not catch:\n%s\n' "$missed" >&2
  exit 1
fi
echo "import rules: all of $(echo "$rules" | wc -l | tr -d ' ') forbidden imports are caught"
