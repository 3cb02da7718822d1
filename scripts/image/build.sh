#!/usr/bin/env bash
# Builds the image of a release with buildah, for all platforms, as one OCI archive. See --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
scripts/image/build.sh --version VERSION --revision COMMIT --epoch SECONDS --out FILE [--platforms LIST] [--assembled]
                       [--storage-driver NAME] [--work FOLDER]

Builds the Dockerfile of this checkout for each platform, and writes one OCI archive with an index of all of them.
The same arguments and the same base images give the same bytes.

  --version VERSION      the label org.opencontainers.image.version, and the tag in the archive
  --revision COMMIT      the label org.opencontainers.image.revision
  --epoch SECONDS        the time of the image and of all its files
  --out FILE             the archive; its digest is printed
  --platforms LIST       architectures, separated by commas (default: amd64,arm64)
  --assembled            use base images that are assembled here from Debian and npm packages, for a machine without a
                         container registry; not for publishing. By default: those that the Dockerfile names
  --storage-driver NAME  how layers are stored: overlay (default), or vfs where overlay cannot be mounted (slower)
  --work FOLDER          work there and leave it behind; base images that are there are used again
  --help                 this text

Run it as root, with: apt-get install buildah podman

Exit codes: 0 done, 1 a step failed, 2 wrong usage, a missing program or no containers.
TEXT
}

official=yes
storage_driver=overlay
keep=no
or_skip=no
work=
version=
revision=
epoch=
out=
platforms=amd64,arm64
arguments=("$@")
while (($# > 0)); do
  case $1 in
    --version | --revision | --epoch | --out | --platforms | --storage-driver | --work)
      name=${1#--}
      if (($# < 2)); then
        echo "build: $1 needs a value; see --help" >&2
        exit 2
      fi
      declare "${name//-/_}=$2"
      shift
      ;;
    --assembled) official=no ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "build: unknown option $1; see --help" >&2
      exit 2
      ;;
  esac
  shift
done
if [[ -z $version || -z $revision || ! $epoch =~ ^[0-9]+$ || -z $out || ! $platforms =~ ^(amd64|arm64)(,(amd64|arm64))*$ ]]; then
  echo 'build: --version, --revision, --epoch and --out are required, and platforms are amd64 and arm64; see --help' >&2
  exit 2
fi

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/image/containers.sh
source "$root/scripts/image/containers.sh"
# shellcheck source=scripts/image/builds.sh
source "$root/scripts/image/builds.sh"
need buildah podman npm unshare tar
if [[ $official == no ]]; then need apt-get dpkg-deb; fi
skip_if_impossible
enter_namespace "${arguments[@]}"

IFS=, read -ra architectures <<<"$platforms"
assemble_bases "${architectures[@]}"
list=localhost/threadwarden:$version
buildah_ manifest rm "$list" >/dev/null 2>&1 || true
buildah_ manifest create "$list" >/dev/null
for architecture in "${architectures[@]}"; do
  step "the image for $architecture" build_gateway "$architecture" "localhost/threadwarden-$architecture:$version" "$root"
  buildah_ manifest add "$list" "localhost/threadwarden-$architecture:$version" >/dev/null
done
rm -rf "$work/archive"
digest=$work/digest
buildah_ manifest push --all --quiet --digestfile "$digest" "$list" "oci:$work/archive:$version"
tar -C "$work/archive" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf "$out" .
echo "image digest: $(cat "$digest")"
