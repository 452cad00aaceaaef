#!/bin/sh
# Installs the coding agents that test/conformance runs into DIR (default: .cache/agents), in the pinned versions.
set -eu

dir=${1:-.cache/agents}
# Without a version npm quietly takes an old one where it thinks that Node is too old for the newest.
claude=2.1.329
codex=0.169.0

bin=$dir/node_modules/.bin
installed() {
  grep -qsF "\"version\": \"$claude\"" "$dir/node_modules/@anthropic-ai/claude-code/package.json" &&
    grep -qsF "\"version\": \"$codex\"" "$dir/node_modules/@openai/codex/package.json" &&
    [ -e "$dir/installed" ]
}
if installed; then
  exit 0
fi

for tool in node npm; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "Missing: $tool. The agents are npm packages: install Node 20 or newer with npm, and try again." >&2
    exit 1
  fi
done

echo "installing claude-code $claude and codex $codex into $dir" >&2
mkdir -p "$dir"
rm -f "$dir/installed"
# npm 11 holds install scripts back and older ones run them all. Only one is needed: it links the native program.
npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel error \
  "@anthropic-ai/claude-code@$claude" "@openai/codex@$codex" >&2
node "$dir/node_modules/@anthropic-ai/claude-code/install.cjs" >&2
"$bin/claude" --version >&2
"$bin/codex" --version >&2
touch "$dir/installed"
