# Sourced by the scripts that build images: base images without a registry, and the build.
# The script that sources it has set `root` and `official`, has sourced containers.sh, and sets `epoch`, itself or with describe_builds.
# shellcheck shell=bash

# ---------------------------------------------------------------------------------------------------------------------
# Base images from Debian and npm packages

node_version=$(sed -n 's/.*"node": "\(24[0-9.]*\)".*/\1/p' "$root/package.json")

# What the build runs: a shell, its tools, and the libraries of Node.
BUILD_PACKAGES='base-files base-passwd bash coreutils dash findutils grep sed netbase tzdata ca-certificates
  libacl1 libattr1 libc6 libgcc-s1 libgmp10 libpcre2-8-0 libselinux1 libssl3 libstdc++6 libtinfo6'
# What gcr.io/distroless/nodejs24-debian13 has.
RUNTIME_PACKAGES='base-files netbase tzdata libc6 libssl3 libgcc-s1 libstdc++6'

# apt ARCHITECTURE WORD… uses Debian's index of packages in a folder of its own: the machine's own need not be current nor know other architectures.
apt() {
  local architecture=$1
  shift
  apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 \
    -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o Acquire::Languages=none \
    -o APT::Sandbox::User=root "$@"
}

debian_index() {
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
  apt "$machine" update
}

# debian_packages ARCHITECTURE FOLDER PACKAGE… unpacks them, without running their scripts.
debian_packages() {
  local architecture=$1 folder=$2 name file
  shift 2
  mkdir -p "$folder" "$work/apt/$architecture"
  for name in bin sbin lib lib64; do
    mkdir -p "$folder/usr/$name"
    ln -sfn "usr/$name" "$folder/$name"
  done
  (cd "$work/apt/$architecture" && apt "$architecture" download "$@")
  for name in "$@"; do
    for file in "$work/apt/$architecture/${name}"_*.deb; do
      dpkg-deb --fsys-tarfile "$file" | tar -C "$folder" -x --keep-directory-symlink
    done
  done
}

# npm_package NAME@VERSION FOLDER
npm_package() {
  mkdir -p "$2" "$work/npm"
  (cd "$work/npm" && npm pack --silent "$1" | tail -n 1 >name)
  tar -xzf "$work/npm/$(cat "$work/npm/name")" -C "$2" --strip-components 1
}

# The certificates that this machine trusts for npm: a registry may be behind a proxy with a CA of its own.
trusted() {
  local file
  file=$(npm config get cafile 2>/dev/null)
  for file in "$file" "${NODE_EXTRA_CA_CERTS:-}"; do
    if [[ -f $file ]]; then cat "$file"; fi
  done
}

# import ARCHITECTURE FOLDER IMAGE CONFIGURATION… makes an image of one layer; the same files give the same image.
import() {
  local architecture=$1 folder=$2 image=$3 container
  shift 3
  container=$(buildah_ from --arch "$architecture" scratch)
  # As an archive, which keeps the owners of files.
  tar -C "$folder" -cf "$folder.tar" .
  buildah_ add --quiet "$container" "$folder.tar" / >/dev/null
  buildah_ config --arch "$architecture" --os linux "$@" "$container"
  buildah_ commit --quiet --timestamp 0 --rm "$container" "$image"
}

PATH_IN_BASE='PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

# Debian's smallest system with a shell, Node and npm: stands for node:24-trixie-slim.
assemble_build_base() {
  local base=$work/build-base
  # shellcheck disable=SC2086 # words
  debian_packages "$machine" "$base" $BUILD_PACKAGES
  install -d -m 1777 "$base/tmp"
  npm_package "node-linux-${machine/amd64/x64}@$node_version" "$work/node-$machine"
  install -D -m 755 "$work/node-$machine/bin/node" "$base/usr/local/bin/node"
  npm_package npm@11 "$base/usr/local/lib/node_modules/npm"
  ln -sfn ../lib/node_modules/npm/bin/npm-cli.js "$base/usr/local/bin/npm"
  chmod +x "$base/usr/local/lib/node_modules/npm/bin/npm-cli.js"
  cat "$base"/usr/share/ca-certificates/mozilla/*.crt <(trusted) >"$base/etc/ssl/certs/ca-certificates.crt"
  cp "$base/usr/share/base-passwd/passwd.master" "$base/etc/passwd"
  cp "$base/usr/share/base-passwd/group.master" "$base/etc/group"
  import "$machine" "$base" localhost/build-base \
    --env "$PATH_IN_BASE" --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
}

# What gcr.io/distroless/nodejs24-debian13:nonroot has: glibc, libstdc++, OpenSSL, certificates, time zones, a user of
# that number, and Node in /nodejs/bin, where no PATH leads. No shell, no tools.
assemble_runtime_base() {
  local architecture=$1 base=$work/runtime-base-$1
  # shellcheck disable=SC2086 # words
  debian_packages "$architecture" "$base" $RUNTIME_PACKAGES
  mkdir -p "$base/etc/ssl/certs" "$base/home/nonroot"
  cp "$work/build-base/etc/ssl/certs/ca-certificates.crt" "$base/etc/ssl/certs/"
  if [[ ! -d $work/node-$architecture ]]; then
    npm_package "node-linux-${architecture/amd64/x64}@$node_version" "$work/node-$architecture"
  fi
  install -D -m 755 "$work/node-$architecture/bin/node" "$base/nodejs/bin/node"
  printf '%s\n' 'root:x:0:0:root:/root:/sbin/nologin' 'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin' \
    "nonroot:x:$uid:$uid:nonroot:/home/nonroot:/sbin/nologin" >"$base/etc/passwd"
  printf '%s\n' 'root:x:0:' 'nobody:x:65534:' "nonroot:x:$uid:" >"$base/etc/group"
  printf '%s\n' 'hosts: files dns' >"$base/etc/nsswitch.conf"
  install -d -m 1777 "$base/tmp"
  chown "$uid:$uid" "$base/home/nonroot"
  import "$architecture" "$base" "localhost/runtime-base:$architecture" \
    --env "$PATH_IN_BASE" --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    --user "$uid" --workingdir /home/nonroot --entrypoint '["/nodejs/bin/node"]'
}

# assemble_bases ARCHITECTURE… unless the official ones are used.
assemble_bases() {
  local architecture
  if [[ $official == yes ]]; then return; fi
  once_in_folder index "Debian's index of packages" debian_index
  once_in_folder build-base "the base of the build: Debian, Node $node_version, npm" assemble_build_base
  for architecture in "$@"; do
    once_in_folder "runtime-base-$architecture" "the base of the image for $architecture: libraries and Node, no shell" \
      assemble_runtime_base "$architecture"
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# Builds

# describe_builds REVISION sets what the images of a check say of themselves.
describe_builds() {
  version=$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$root/package.json")
  revision=$1
  epoch=1700000000
}

# build ARCHITECTURE IMAGE CONTEXT OPTION… builds a Dockerfile. The time of every file and of the image is $epoch.
build() {
  local architecture=$1 image=$2 context=$3 npmrc=$work/npmrc
  shift 3
  # Chroot isolation: RUN works also where a container of its own may not be made during a build.
  # The platforms are arguments because buildah 1.28 does not set them for FROM. Layers, so that another architecture uses
  # the stages of the first one.
  local options=(--isolation chroot --layers --tag "$image" --timestamp "$epoch" --platform "linux/$architecture")
  options+=(--build-arg "BUILDPLATFORM=linux/$machine" --build-arg "TARGETPLATFORM=linux/$architecture")
  if [[ $official == no ]]; then
    options+=(--pull-never --build-arg BUILD_IMAGE=localhost/build-base)
    options+=(--build-arg "RUNTIME_IMAGE=localhost/runtime-base:$architecture")
  fi
  # What belongs to this machine's npm alone (its folders, its files) means nothing in the build.
  (
    umask 077
    if [[ -f ~/.npmrc ]]; then grep -Ev '^(cafile|cache|prefix|nodedir|globalconfig|userconfig) *=' ~/.npmrc || true; fi >"$npmrc"
    echo "registry=$(npm config get registry 2>/dev/null)" >>"$npmrc"
  )
  buildah_ build "${options[@]}" "$@" --secret "id=npmrc,src=$npmrc" "$context"
}

# build_gateway ARCHITECTURE IMAGE CONTEXT OPTION… builds the gateway's image, of $version and $revision.
build_gateway() {
  local architecture=$1 image=$2 context=$3
  shift 3
  build "$architecture" "$image" "$context" --build-arg "SOURCE_DATE_EPOCH=$epoch" --build-arg "VERSION=$version" \
    --build-arg "REVISION=$revision" \
    --label "org.opencontainers.image.created=$(date --utc --date "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" "$@"
}

# build_examples ARCHITECTURE IMAGE CONTEXT builds the image of the example runtime and issuer.
build_examples() {
  build "$@" --file "$3/examples/Dockerfile" --ignorefile "$3/examples/Dockerfile.dockerignore"
}
