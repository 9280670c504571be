#!/usr/bin/env bash
# Downloads moto with its Python packages from Debian 13, and unpacks them. Nothing is installed.
#
#   ./unpack.sh FOLDER      creates FOLDER, whose usr/lib/python3/dist-packages contains moto
#
# Needs apt-get, dpkg-deb and Debian's archive keyring. DEBIAN_MIRROR names a mirror; by default, the one from which
# this machine installs Debian.
set -euo pipefail
target=${1:?usage: unpack.sh FOLDER}
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | sed -n '/debian\/*$/{p;q}')}
if [ -z "$mirror" ]; then
  echo "unpack.sh: apt has no source of Debian; set DEBIAN_MIRROR to the address of a Debian mirror" >&2
  exit 1
fi
keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
work=$(mktemp -d "${TMPDIR:-/tmp}/moto-XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir -p "$work"/{lists/partial,cache/archives/partial,debs,root}
echo "deb [signed-by=$keyring] $mirror trixie main" >"$work/sources.list"
apt() {
  apt-get -qq -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist="$work/sources.list" \
    -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root "$@"
}
apt update
cd "$work/debs"
apt download python3-moto python3-boto3 python3-botocore python3-s3transfer python3-blinker python3-click \
  python3-dateutil python3-flask python3-flask-cors python3-itsdangerous python3-jinja2 python3-jmespath \
  python3-markupsafe python3-requests python3-responses python3-werkzeug python3-xmltodict
for package in ./*.deb; do dpkg-deb -x "$package" "$work/root"; done
# Complete or absent: an interrupted run leaves no folder.
mkdir -p "$(dirname "$target")"
mv -T "$work/root" "$target"
