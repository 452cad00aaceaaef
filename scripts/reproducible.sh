#!/bin/sh
# reproducible.sh: the same commit gives the same files in two folders. As root, the package is then installed, used and purged.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for at in one another/deeper; do
    git clone -q . "$folder/$at"
    (cd "$folder/$at" && sh scripts/dist.sh 0.0.1 >/dev/null)
done
diff "$folder/one/dist/SHA256SUMS" "$folder/another/deeper/dist/SHA256SUMS"
echo "the same bytes in both folders"
if [ "$(id -u)" != 0 ] || ! command -v dpkg >/dev/null; then
    echo "the package is not tried: that needs root and dpkg"
    exit 0
fi
dpkg --install --force-depends "$folder/one/dist/agency_0.0.1_linux_$(dpkg --print-architecture).deb"
test "$(/usr/bin/agency version)" = "agency 0.0.1"
dpkg --listfiles agency | grep -qx /usr/share/man/man1/agency-run.1.gz
dpkg --purge agency
test ! -e /usr/bin/agency
test ! -e /usr/share/man/man1/agency-run.1.gz
echo "the package was installed, used and purged"
