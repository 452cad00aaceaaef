#!/bin/sh
# Installs the coding agents that test/conformance runs into DIR (default: .cache/agents), in the versions of the registry, by npm.
set -eu

dir=${1:-.cache/agents}
known=$(CGO_ENABLED=0 go run -trimpath ./test/conformance/packages)
# Without a version npm quietly takes an old one where it thinks that Node is too old for the newest.
packages=$(echo "$known" | cut -d ' ' -f 2 | tr '\n' ' ')

if [ "$(cat "$dir/installed" 2>/dev/null)" = "$packages" ]; then
  exit 0
fi
for tool in node npm; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "Missing: $tool. The agents are npm packages: install Node 20 or newer, with npm, and try again." >&2
    exit 1
  fi
done

echo "installing $packages into $dir" >&2
mkdir -p "$dir"
rm -f "$dir/installed"
# npm 11 holds install scripts back and older ones run all of them. Those of the agents are needed: they link the native programs.
npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel error $packages >&2
# Copilot unpacks itself when it runs first: once here, and not in each home of a test.
COPILOT_CACHE_HOME=$(cd "$dir" && pwd)/copilot
export COPILOT_CACHE_HOME
echo "$known" | while read -r program package; do
  (
    cd "$dir/node_modules/${package%@*}"
    sh -c "$(node -p 'require("./package.json").scripts?.postinstall ?? ""')" >&2
  )
  "$dir/node_modules/.bin/$program" --version >&2
done
echo "$packages" >"$dir/installed"
