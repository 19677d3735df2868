#!/usr/bin/env bash
# Runs tests with another interpreter than .venv's, in a clone below .local/interpreters.
#
#     tools/interpreter.sh /usr/bin/python3 -m "not e2e and not long" tests/unit tests/integration
#     tools/interpreter.sh 3.13 tests/unit tests/property tests/contract tests/simulation
#
# The first argument is an interpreter or a version. A version means python<version> on PATH or in pyenv, or
# else a Debian release that has it, installed into a folder by debootstrap (requires root). The other
# arguments go to pytest. Exits with 77 if the version is not available.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A releases=([3.13]=trixie)
wanted=${1:?give an interpreter or a version, then words for pytest}
shift

root=.local/interpreters
# A name on PATH may be a shim for an interpreter that is not installed.
runs() { command -v "$1" >/dev/null && "$1" -c pass 2>/dev/null; }
python= release=
for one in "$wanted" "python$wanted" "$(pyenv root 2>/dev/null || true)/versions/$wanted".*/bin/python3; do
  if runs "$one"; then
    python=$(command -v "$one")
    break
  fi
done
if [[ -z $python ]]; then
  python=python3 release=${releases[$wanted]:?"no interpreter $wanted, and no release of Debian is known to have it"}
fi
place=$root/${wanted//\//_}
folder=$place${release:+/chroot/checkout}

if [[ -n $release && ! -x $place/chroot/usr/bin/python3 ]]; then
  command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends debootstrap; } ||
    exit 77
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
  mkdir -p "$place"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,make,git \
    "$release" "$place/chroot" "$mirror" >"$place/debootstrap.log" ||
    { echo "without Python $wanted: $(tail -n 1 "$place/debootstrap.log")" >&2; rm -rf "$place/chroot"; exit 77; }
fi
rm -rf "$folder/.git" && mkdir -p "$folder"
git clone -q --no-hardlinks . "$folder/.new" && mv "$folder/.new/.git" "$folder/" && rm -rf "$folder/.new"
git -C "$folder" checkout -q -f HEAD && git -C "$folder" clean -q -f -d

if [[ -z $release ]]; then
  make -s -C "$folder" PYTHON="$python" setup
  (cd "$folder" && ORBWEAVER_CORPORA=${ORBWEAVER_CORPORA:-$(realpath -m "$OLDPWD/../shared/corpora")} \
    .venv/bin/python -m pytest "$@")
  exit
fi

# Certificates, DNS settings and pip's index come from the machine.
cp -L /etc/resolv.conf /etc/pip.conf "$place/chroot/etc/" 2>/dev/null || true
cp -L /etc/ssl/certs/ca-certificates.crt "$place/chroot/etc/ssl/certs/"
home=$place/chroot/$(basename ~root)
mkdir -p "$home/.config/pip"
cp -L "$HOME/.config/pip/pip.conf" "$home/.config/pip/" 2>/dev/null || true
cp -L "$HOME/.npmrc" "$home/" 2>/dev/null || true
mounted=()
leave() { for one in "${mounted[@]}"; do umount -l "$one"; done; }
trap leave EXIT
for system in proc dev; do
  mount --rbind "/$system" "$place/chroot/$system" 2>/dev/null || mount --bind "/$system" "$place/chroot/$system"
  mounted=("$place/chroot/$system" "${mounted[@]}")
done
chroot "$place/chroot" /bin/sh -c \
  'cd /checkout && export HOME=~root && make -s setup && .venv/bin/python -m pytest "$@"' sh "$@"
