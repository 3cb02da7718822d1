#!/usr/bin/env bash
# Builds the Dockerfile and runs its image the way it is meant to be run: as uid 65532, on a read-only root file
# system, without capabilities or network. See --help.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/image/containers.sh
source "$root/scripts/image/containers.sh"
# shellcheck source=scripts/image/builds.sh
source "$root/scripts/image/builds.sh"

usage() {
  echo "scripts/container-check.sh [--pods] [--compose] $CHECK_OPTIONS"
  cat <<'TEXT'

Builds the image with buildah, runs it with podman and runc, and checks what the Dockerfile promises: what is in the
image and what is not, that a second build gives the same digest, that the image for the other architecture has that
architecture's programs, who the process is, where it can write, that it becomes ready and stops when told to.

By default no container registry is needed. The two base images are assembled here: Debian 12 with Node and npm from
the npm registry for the build; the few libraries that Node needs, Node at distroless's place and no shell for the
result. Needed are Debian's mirror and the npm registry. The machine's npm settings are used (registry, ~/.npmrc as a
build secret, the CA file), and do not get into the image.

  --pods                 then run scripts/pod-check.sh with the same image
  --compose              then run scripts/compose-check.sh with the same images
TEXT
  check_options_usage
  cat <<'TEXT'

Run it as root on Debian, after node scripts/setup.mjs --only-containers.
With qemu-user-static, the image for the other architecture is also started.
Everything is written to one temporary folder, which is removed at the end and on failure; images and containers that
the machine has already are not seen and not touched.

Exit codes: 0 all checks passed, 1 a check or a step failed, 2 wrong usage, a missing program or no containers.
TEXT
}

check_options 'pods compose' "$@"
need unshare
skip_if_impossible
need buildah podman runc node npm
if [[ $official == no ]]; then need apt-get dpkg-deb; fi
enter_namespace "$@"

image=localhost/threadwarden:check
other=$(if [[ $machine == amd64 ]]; then echo arm64; else echo amd64; fi)
describe_builds 0123456789abcdef0123456789abcdef01234567

assemble_bases "$machine" "$other"
# What goes to the build, as it is now: the builds below compare, so a change of a file meanwhile must not count.
sources() {
  rm -rf "$1"
  # shellcheck disable=SC2046 # words and patterns
  (cd "$root" && find Dockerfile .dockerignore $(sed -n 's/^!//p' .dockerignore) -type f) | while read -r file; do
    mkdir -p "$1/$(dirname "$file")"
    cat "$root/$file" >"$1/$file"
  done
}
sources "$work/context"
step 'buildah builds the Dockerfile' build_gateway "$machine" "$image" "$work/context"
touch "$work/done.gateway"
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
is '/data gets no volume that nobody named' null "$(inspect '{{json .Config.Volumes}}')"
label() { inspect "{{index .Labels \"org.opencontainers.image.$1\"}}"; }
is 'labels say what it is, and where it comes from' \
  "threadwarden MIT $version $revision 2023-11-14T22:13:20Z $base_name" \
  "$(label title) $(label licenses) $(label version) $(label revision) $(label created) $(label base.name)"
is '… and where its sources and its documentation are' 'yes yes yes' \
  "$(for name in url source documentation; do
    if [[ $(label $name) == https://github.com/threadwarden/threadwarden* ]]; then echo yes; fi
  done | paste -sd ' ')"
is '/app holds what the program needs and no more' 'LICENSE config dist node_modules package.json policies sbom.cdx.json' \
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

# Each package once, by name and version.
installed() {
  node -e '
    const { readdirSync, readFileSync } = require("node:fs")
    const folder = `${process.argv[1]}/node_modules`
    const files = readdirSync(folder, { recursive: true }).filter((file) => /(^|node_modules\/)(@[^/]+\/)?[^/]+\/package\.json$/.test(file))
    const packages = files.map((file) => JSON.parse(readFileSync(`${folder}/${file}`, "utf8")))
    console.log([...new Set(packages.map(({ name, version }) => `${name}@${version}`))].sort().join("\n"))
  ' "$mounted/app"
}
listed() {
  node -e '
    const listed = (components) => components.flatMap(({ group, name, version, components = [] }) =>
      [`${group === undefined ? "" : `${group}/`}${name}@${version}`, ...listed(components)])
    console.log([...new Set(listed(JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")).components))].sort().join("\n"))
  ' "$mounted/app/sbom.cdx.json"
}
is 'the SBOM lists the packages that are there, and no others' "$(installed)" "$(listed)"
is '… of which there are some' yes "$(if (($(listed | wc -l) > 50)); then echo yes; fi)"
podman_ image unmount "$image" >/dev/null

# ---------------------------------------------------------------------------------------------------------------------
# Another build, and another architecture

# oci_digest IMAGE FOLDER is the digest that a registry would give it; the folder then has the image as it is pulled.
oci_digest() {
  rm -rf "$2"
  buildah_ push --quiet "$1" "oci:$2:image"
  sed -n 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/p' "$2/index.json"
}
# Other modification times and another umask, as another checkout has them.
rm -rf "$work/context-again"
cp -r "$work/context" "$work/context-again"
chmod -R go= "$work/context-again"
step 'a second build, without a cache' build_gateway "$machine" localhost/threadwarden:again "$work/context-again" --no-cache
first=$(oci_digest "$image" "$work/oci")
is 'two builds have one digest' "$first" "$(oci_digest localhost/threadwarden:again "$work/oci-again")"
echo "# compressed: $(megabytes "$(du --apparent-size -sb "$work/oci/blobs" | cut -f 1)")"

step "buildah builds the Dockerfile for $other" build_gateway "$other" localhost/threadwarden:other "$work/context"
is "the image for $other says so" "$other" "$(podman_ image inspect --format '{{.Architecture}}' localhost/threadwarden:other)"
mounted=$(podman_ image mount localhost/threadwarden:other)
elf() { od -An -tx1 -j18 -N1 "$1" | tr -d ' ' | sed 's/3e/amd64/; s/b7/arm64/'; }
is '… and its Node and its SQLite are of that architecture' "$other $other" \
  "$(elf "$mounted/nodejs/bin/node") $(elf "$mounted/app/node_modules/better-sqlite3/prebuilds/linux-${other/amd64/x64}.node")"
emulator=qemu-$(if [[ $other == arm64 ]]; then echo aarch64; else echo x86_64; fi)-static
if command -v "$emulator" >/dev/null; then
  emulated() { "$emulator" -L "$mounted" "$mounted/nodejs/bin/node" "$@" 2>&1; }
  is '… it starts in an emulator' "$version" "$(emulated "$mounted/app/dist/cli.js" --version)"
  is '… and so does its SQLite' 42 "$(emulated -e "
    const Database = require('$mounted/app/node_modules/better-sqlite3')
    console.log(new Database(':memory:').prepare('SELECT 42').pluck().get())")"
else
  echo "# not started for $other: $emulator is not installed"
fi
podman_ image unmount localhost/threadwarden:other >/dev/null

# ---------------------------------------------------------------------------------------------------------------------
# How it runs

# A configuration as it would be mounted from a ConfigMap: an issuer whose key is in a file, so that nothing is fetched.
mkdir -p "$work/etc"
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

is '--version answers' "$version" "$(once "$image" --version 2>&1 || true)"
is 'validate finds the configuration valid' '/etc/threadwarden/threadwarden.yaml is valid' \
  "$(once "${configured[@]}" --volume ownership:/data "$image" validate --strict --config /etc/threadwarden/threadwarden.yaml 2>&1 || true)"
output=$(once --entrypoint /bin/sh "$image" -c true 2>&1) && code=0 || code=$?
is 'a shell cannot be started' 127 "$code"
output=$(once "$image" 2>&1) && code=0 || code=$?
is 'without a configuration it does not start' 78 "$code"
has '… and says which file it misses' /etc/threadwarden/threadwarden.yaml "$output"
output=$(once "${configured[@]}" "$image" 2>&1) && code=0 || code=$?
is 'without a volume for /data it does not start' 1 "$code"
install -d -m 755 "$work/foreign"
output=$(once "${configured[@]}" --volume "$work/foreign:/data" "$image" 2>&1) && code=0 || code=$?
is 'with a /data that is not its own it does not start' 1 "$code"
has '… and names the store' /data/ownership.db "$output"

start gateway
is 'serve starts: /livez answers' 200 "$(until_is 200 status_of http://127.0.0.1:8081/livez)"
started=$(podman_ inspect --format '{{.State.StartedAt.UnixMilli}}' gateway)
listening=$(podman_ logs gateway 2>&1 | sed -n '/"msg":"listening"/s/.*"time":"\([^"]*\)".*/\1/p')
ticks=$(awk '{ print $14 + $15 }' "/proc/$(podman_ inspect --format '{{.State.Pid}}' gateway)/stat")
echo "# it listened $(($(date --date "$listening" +%s%3N) - started)) ms after its start; CPU time $((ticks * 10)) ms"
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
if [[ $pods == yes || $compose == yes ]]; then
  # podman in another namespace would find these containers, and not their processes.
  podman_ rm --force --time 2 runtime >/dev/null
  podman_ rm --force --time 2 gateway again >/dev/null
  podman_ volume rm --all --force >/dev/null
  options=(--work "$work" --storage-driver "$storage_driver")
  if [[ $official == yes ]]; then options+=(--official); fi
  # In namespaces of its own.
  check() { env -u THREADWARDEN_NAMESPACE TMPDIR="${TMPDIR%/tmp}" "$root/scripts/$1-check.sh" "${options[@]}"; }
  if [[ $pods == yes ]]; then check pod; fi
  if [[ $compose == yes ]]; then check compose; fi
fi
