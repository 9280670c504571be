#!/usr/bin/env bash
# Builds kube-apiserver and kube-controller-manager 1.20.2 from the source package "kubernetes" of Debian 12.
#
#   ./build.sh FOLDER      writes FOLDER/kube-apiserver and FOLDER/kube-controller-manager
#
# Needs apt-get, dpkg-deb, tar, patch, xz and about 4 GB below TMPDIR; nothing is installed. The Go compiler is Debian's
# 1.19. The library reflect2 is replaced by Debian's 1.0.2: the 1.0.1 in the source package corrupts memory when Go 1.18
# or newer compiles it (https://github.com/modern-go/reflect2/issues/22).
set -euo pipefail
target=$(mkdir -p "${1:?usage: build.sh FOLDER}" && cd "$1" && pwd)
# By default, the mirror from which this machine installs Debian 12.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | sed -n 1p)}
if [ -z "$mirror" ]; then
  echo "build.sh: apt has no source for bookworm; set DEBIAN_MIRROR to the address of a Debian mirror" >&2
  exit 1
fi
keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
version=v1.20.2
work=$(mktemp -d "${TMPDIR:-/tmp}/kubernetes-build-XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

mkdir -p lists/partial cache/archives/partial root path/src/k8s.io
for kind in deb deb-src; do echo "$kind [signed-by=$keyring] $mirror bookworm main"; done >sources.list
apt() {
  apt-get -qq -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist="$work/sources.list" \
    -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root "$@"
}
apt update
apt source --download-only kubernetes
apt download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev
for package in ./*.deb; do dpkg-deb -x "$package" root; done

kubernetes=$work/path/src/k8s.io/kubernetes
mkdir "$kubernetes"
tar -xf kubernetes_*.orig.tar.* -C "$kubernetes" --strip-components=1
tar -xf kubernetes_*.debian.tar.* -C "$kubernetes"
cd "$kubernetes"
while read -r name; do patch -s -p1 <"debian/patches/$name"; done < <(grep -v '^#' debian/patches/series || true)
rm vendor/github.com/modern-go/reflect2/*.{go,s}
cp "$work"/root/usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} vendor/github.com/modern-go/reflect2/

export GOROOT=$work/root/usr/lib/go-1.19 GOPATH=$work/path GOCACHE=$work/cache/go GO111MODULE=off GOFLAGS=-p=${JOBS:-2} CGO_ENABLED=0
export PATH=$GOROOT/bin:$PATH
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
# The definitions that the server publishes are generated, and the source package does not contain them.
inputs=$(grep -rl --include=*.go '+k8s:openapi-gen=' vendor/k8s.io/ staging/src/k8s.io pkg cmd 2>/dev/null |
  xargs -n1 dirname | sed -e 's|^staging/src/|vendor/|' | sort -u | grep -v -e '/testdata' -e '/test/' -e kube-openapi -e code-generator \
    -e sample-apiserver -e apiextensions-apiserver/examples | sed -e 's|^|k8s.io/kubernetes/|' | paste -sd,)
"$work/openapi-gen" -i "$inputs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
  -h hack/boilerplate/boilerplate.generatego.txt -r /dev/null --output-base "$work/path/src"

base=k8s.io/component-base/version
flags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=20"
for program in kube-apiserver kube-controller-manager; do
  go build -tags providerless -ldflags "$flags" -o "$target/$program.part" "./cmd/$program"
  mv "$target/$program.part" "$target/$program"
done
