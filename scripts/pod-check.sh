#!/usr/bin/env bash
# Runs the manifests of deploy/kubernetes as pods of podman, with the real runtime and a real issuer. See --help.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/image/containers.sh
source "$root/scripts/image/containers.sh"
# shellcheck source=scripts/image/builds.sh
source "$root/scripts/image/builds.sh"

usage() {
  echo "scripts/pod-check.sh [--stay] $CHECK_OPTIONS"
  cat <<'TEXT'

Builds the image of the gateway and that of the examples, makes pods from the overlays in deploy/kubernetes, runs them
with `podman kube play`, and checks:

  sidecar      all exchanges of the demo through the pod; the runtime's port is closed outside the pod; kill -9 of the
               gateway under load: podman restarts it, and no claim is lost; an open stream ends well when the pod stops
  standalone   all exchanges of the demo; both of two gateways on one PostgreSQL are replaced under load, as a
               Deployment does it: no request fails, and no stream ends without its end event

What podman cannot do as a kubelet does is listed in docs/how-to/deploy/pods-of-podman.md.

  --stay                 check nothing: keep the pod sidecar running until Ctrl+C, and print commands that reach it
TEXT
  check_options_usage
  cat <<'TEXT'

Run it as root on Debian, after npm run setup and node scripts/setup.mjs --only-containers.
kubectl 1.21 or newer is that of npm run test:manifests, an installed one, or one that KUBECTL in the environment names.
It works in mount and network namespaces of its own. Images, containers and networks of the machine are not touched.

Exit codes: 0 all checks passed, 1 a check or a step failed, 2 wrong usage, a missing program or no containers.
TEXT
}

check_options stay "$@"
kubectl=${KUBECTL:-}
# The one that the tests of the manifests have unpacked.
for found in "$root"/testing/deploy/node_modules/.programs/*/kubectl kubectl; do
  if [[ -z $kubectl ]] && command -v "$found" >/dev/null; then kubectl=$found; fi
done
need unshare
skip_if_impossible
need buildah podman runc npm ip "${kubectl:-kubectl}"
if [[ $official == no ]]; then need apt-get dpkg-deb; fi

gateway=localhost/threadwarden:check
examples=localhost/threadwarden-examples:check
describe_builds unknown

enter_namespace "$@"
assemble_bases "$machine"
# container-check.sh may have built it.
once_in_folder gateway 'the image of the gateway' build_gateway "$machine" "$gateway" "$root"
once_in_folder examples 'the image of the examples' build_examples "$machine" "$examples" "$root"

limit_containers

"$kubectl" kustomize "$root/deploy/kubernetes/overlays/sidecar" >"$work/sidecar.yaml"
"$kubectl" kustomize "$root/deploy/kubernetes/overlays/standalone" >"$work/standalone.yaml"
"$kubectl" kustomize "$root/deploy/kubernetes/bases/runtime" >"$work/runtime.yaml"

# The network of the pods is in a namespace of its own: no rule of the machine's firewall changes.
node=$root/node_modules/.bin/node
# The checks wait for events without a limit of their own.
limit=(timeout --kill-after 30 1200)
if [[ $stay == yes ]]; then limit=(); fi
THREADWARDEN_PODS=$work THREADWARDEN_STAY=$stay "${limit[@]}" unshare --net sh -ec 'ip link set lo up; exec "$@"' sh "$node" "$root/scripts/pods/run.ts" \
  podman "${store[@]}" --tmpdir "$work/libpod" --runtime runc --cgroup-manager cgroupfs --events-backend none
