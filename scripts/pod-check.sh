#!/usr/bin/env bash
# Runs the manifests of deploy/kubernetes as pods of podman, with the real runtime and a real issuer. See --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
scripts/pod-check.sh [--official] [--storage-driver NAME] [--work FOLDER] [--or-skip] [--keep]

Builds the image of the gateway and that of the examples, makes pods from the overlays in deploy/kubernetes, runs them
with `podman kube play`, and checks:

  sidecar      all exchanges of the demo through the pod; the runtime's port is closed outside the pod; kill -9 of the
               gateway under load: podman restarts it, and no claim is lost; an open stream ends well when the pod stops
  standalone   all exchanges of the demo; both of two gateways on one PostgreSQL are replaced under load, as a
               Deployment does it: no request fails, and no stream ends without its end event

What podman cannot do as a kubelet does is listed in docs/how-to/deploy/pods-of-podman.md.

  --official             use the base images that the Dockerfiles name, pulled from their registries
  --storage-driver NAME  how layers are stored: overlay (default), or vfs where overlay cannot be mounted (slower)
  --work FOLDER          work there and leave it behind; what another script has built there is not built again
  --or-skip              where the machine allows no containers, say why and exit with 0
  --keep                 leave the working folder behind, and say where it is
  --help                 this text

Run it as root on Debian, after npm run setup and node scripts/setup.mjs --only-containers.
kubectl 1.21 or newer is that of npm run test:deploy, an installed one, or one that KUBECTL in the environment names.
It works in mount and network namespaces of its own. Images, containers and networks of the machine are not touched.

Exit codes: 0 all checks passed, 1 a check or a step failed, 2 wrong usage, a missing program or no containers.
TEXT
}

official=no
storage_driver=overlay
keep=no
work=
or_skip=no
arguments=("$@")
while (($# > 0)); do
  case $1 in
    --official) official=yes ;;
    --storage-driver)
      storage_driver=${2:?--storage-driver needs a name}
      shift
      ;;
    --work)
      work=${2:?--work needs a folder}
      shift
      ;;
    --or-skip) or_skip=yes ;;
    --keep) keep=yes ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "pod-check: unknown option $1; see --help" >&2
      exit 2
      ;;
  esac
  shift
done

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/image/containers.sh
source "$root/scripts/image/containers.sh"
# shellcheck source=scripts/image/builds.sh
source "$root/scripts/image/builds.sh"
kubectl=${KUBECTL:-}
# The one that the tests of the manifests have unpacked.
for found in "$root"/testing/deploy/node_modules/.programs/*/kubectl kubectl; do
  if [[ -z $kubectl ]] && command -v "$found" >/dev/null; then kubectl=$found; fi
done
need buildah podman runc npm unshare ip "${kubectl:-kubectl}"
if [[ $official == no ]]; then need apt-get dpkg-deb; fi
skip_if_impossible

gateway=localhost/threadwarden:check
examples=localhost/threadwarden-examples:check
version=$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$root/package.json")
revision=unknown
epoch=1700000000

enter_namespace "${arguments[@]}"
assemble_bases "$machine"
# Chosen by name, because it may be the one of container-check.sh.
once_in_folder gateway 'the image of the gateway' build_gateway "$machine" "$gateway" "$root"
once_in_folder examples 'the image of the examples' build "$machine" "$examples" "$root" \
  --file "$root/examples/Dockerfile" --ignorefile "$root/examples/Dockerfile.dockerignore"

# podman's own limits may be more than a machine allows.
cat >"$work/containers.conf" <<'TOML'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
log_driver = "k8s-file"
TOML
export CONTAINERS_CONF=$work/containers.conf

"$kubectl" kustomize "$root/deploy/kubernetes/overlays/sidecar" >"$work/sidecar.yaml"
"$kubectl" kustomize "$root/deploy/kubernetes/overlays/standalone" >"$work/standalone.yaml"
"$kubectl" kustomize "$root/deploy/kubernetes/bases/runtime" >"$work/runtime.yaml"

# The network of the pods is in a namespace of its own: no rule of the machine's firewall changes.
node=$root/node_modules/.bin/node
THREADWARDEN_PODS=$work unshare --net sh -ec 'ip link set lo up; exec "$@"' sh "$node" "$root/testing/pods/run.ts" \
  podman "${store[@]}" --tmpdir "$work/libpod" --runtime runc --cgroup-manager cgroupfs --events-backend none
