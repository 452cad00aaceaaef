#!/bin/sh
# Installs the coding agents that test/conformance runs into DIR (default: .cache/agents), in pinned versions, by npm.
set -eu

dir=${1:-.cache/agents}
# Without a version npm quietly takes an old one where it thinks that Node is too old for the newest.
agents="@anthropic-ai/claude-code@2.1.329 @openai/codex@0.169.0 opencode-ai@1.18.33 @google/gemini-cli@0.61.0 @github/copilot@1.0.102"

if [ "$(cat "$dir/installed" 2>/dev/null)" = "$agents" ]; then
  exit 0
fi
for tool in node npm; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "Missing: $tool. The agents are npm packages: install Node 20 or newer, with npm, and try again." >&2
    exit 1
  fi
done

echo "installing $agents into $dir" >&2
mkdir -p "$dir"
rm -f "$dir/installed"
# npm 11 holds install scripts back and older ones run all of them. Two are needed: they link the native programs.
npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel error $agents >&2
node "$dir/node_modules/@anthropic-ai/claude-code/install.cjs" >&2
(cd "$dir/node_modules/opencode-ai" && node postinstall.mjs) >&2
"$dir/node_modules/.bin/claude" --version >&2
for agent in codex opencode gemini; do
  "$dir/node_modules/.bin/$agent" --version >&2
done
# It unpacks itself when it runs first: once here, and not in each home of a test.
COPILOT_CACHE_HOME=$(cd "$dir" && pwd)/copilot COPILOT_AUTO_UPDATE=false "$dir/node_modules/.bin/copilot" --version >&2
echo "$agents" >"$dir/installed"
