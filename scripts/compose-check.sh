#!/usr/bin/env bash
# Runs deploy/compose.yaml in containers, with docker-compose and podman's socket. See --help.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/image/containers.sh
source "$root/scripts/image/containers.sh"
# shellcheck source=scripts/image/builds.sh
source "$root/scripts/image/builds.sh"

usage() {
  echo "scripts/compose-check.sh $CHECK_OPTIONS"
  cat <<'TEXT'

Builds the images of the gateway and of the examples, starts deploy/compose.yaml with docker-compose, and checks:

  - every container is healthy, without capabilities, and on a read-only root file system
  - a user signs in and runs the agent; others cannot read the thread; Prometheus has the metrics and the alert rules
  - a container reaches the members of its networks and no others; this machine reaches the two published ports
  - the owners of threads are kept when all containers are replaced

docs/how-to/deploy/compose.md says what differs from Docker.

By default no container registry is needed: PostgreSQL and Prometheus are those of Debian, in images that have the users,
folders and programs of the official ones. Debian's versions are older.

TEXT
  check_options_usage
  cat <<'TEXT'

Run it as root on Debian, after npm run setup and node scripts/setup.mjs --only-containers.
It works in mount and network namespaces of its own. Images, containers and networks of the machine are not touched.

Exit codes: 0 all checks passed, 1 a check or a step failed, 2 wrong usage, a missing program or no containers.
TEXT
}

check_options '' "$@"
need unshare
skip_if_impossible
need buildah podman runc npm ip docker-compose
if [[ $official == no ]]; then need apt-get dpkg-deb; fi

describe_builds unknown
# image_of NAME is the image in the Compose file whose name ends so.
image_of() { sed -n "s|^ *image: \(\(.*/\)*$1:.*\)|\1|p" "$root/deploy/compose.yaml"; }

# Debian's PostgreSQL and Prometheus with all that they depend on, in one folder.
services_base() {
  local base=$work/services-base apt=$work/apt/services file name
  local options=(-o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o Debug::NoLocking=1)
  mkdir -p "$apt/archives/partial" "$base"
  # As if nothing were installed, so that it downloads every dependency.
  : >"$apt/status"
  apt "$machine" "${options[@]}" install -y --download-only --no-install-recommends \
    base-files bash coreutils curl dash grep netbase postgresql-15 prometheus tzdata
  for name in bin sbin lib lib64; do
    mkdir -p "$base/usr/$name"
    ln -sfn "usr/$name" "$base/$name"
  done
  for file in "$apt"/archives/*.deb; do dpkg-deb --fsys-tarfile "$file" | tar -C "$base" -x --keep-directory-symlink; done
  rm -rf "$base"/usr/share/{doc,man,locale} "$base"/usr/lib/*/libLLVM*
  mkdir -p "$base/usr/local/bin"
  install -d -m 1777 "$base/tmp" "$base/var/lib/postgresql/data"
  install -d -o 999 -g 999 "$base/run/postgresql"
  install -d -o 65534 -g 65534 "$base/prometheus"
  printf '%s\n' 'root:x:0:0:root:/root:/bin/bash' 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' \
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin' >"$base/etc/passwd"
  printf '%s\n' 'root:x:0:' 'postgres:x:999:' 'nogroup:x:65534:' >"$base/etc/group"
  chown 999:999 "$base/var/lib/postgresql/data"
  # What the entry point of the official image does with these variables.
  cat >"$base/usr/local/bin/docker-entrypoint.sh" <<'SH'
#!/bin/bash
set -euo pipefail
if [[ ! -s $PGDATA/PG_VERSION ]]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --encoding=UTF8 --locale=C.UTF-8 \
    --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -j postgres
fi
exec "$@"
SH
  # The command of the health check: Debian's promtool is older.
  cat >"$base/usr/local/bin/promtool" <<'SH'
#!/bin/bash
if [[ "$1 $2" == 'check healthy' ]]; then exec curl --fail --silent "${3#--http.url=}/-/healthy"; fi
exec /usr/bin/promtool "$@"
SH
  chmod 755 "$base"/usr/local/bin/*
}

services() {
  services_base
  import "$machine" "$work/services-base" "$(image_of postgres)" --user postgres --env PGDATA=/var/lib/postgresql/data \
    --env "$PATH_IN_BASE:/usr/lib/postgresql/15/bin" --volume /var/lib/postgresql/data \
    --entrypoint '["docker-entrypoint.sh"]' --cmd "postgres -c listen_addresses=*"
  import "$machine" "$work/services-base" "$(image_of prometheus)" --user nobody --env "$PATH_IN_BASE" \
    --volume /prometheus --entrypoint '["prometheus"]'
}

enter_namespace "$@"
assemble_bases "$machine"
once_in_folder gateway 'the image of the gateway' build_gateway "$machine" localhost/threadwarden:check "$root"
once_in_folder examples 'the image of the examples' build_examples "$machine" localhost/threadwarden-examples:check "$root"
if [[ $official == no ]]; then
  once_in_folder services 'the images of PostgreSQL and Prometheus, from Debian' services
else
  once_in_folder services 'the images of PostgreSQL and Prometheus' \
    podman_ pull --quiet "$(image_of postgres)" "$(image_of prometheus)"
fi
podman_ tag localhost/threadwarden:check "$(image_of threadwarden)"
# As the API of Docker reads a short name.
podman_ tag localhost/threadwarden-examples:check "docker.io/library/$(image_of threadwarden-examples)"

limit_containers
# Its timers for health checks are those of systemd; scripts/compose/run.ts runs the checks.
export DISABLE_HC_SYSTEMD=true

node=$root/node_modules/.bin/node
# The checks wait for events without a limit of their own.
THREADWARDEN_COMPOSE=$work/compose timeout --kill-after 30 600 unshare --net sh -ec 'ip link set lo up; exec "$@"' sh "$node" \
  "$root/scripts/compose/run.ts" podman "${store[@]}" --tmpdir "$work/libpod" --runtime runc --cgroup-manager cgroupfs --events-backend none
