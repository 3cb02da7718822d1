# Sourced by the scripts that build or run images: a private place for buildah and podman, steps and checks.
# The script that sources it has a function `usage`, and sets `keep`, `work`, `or_skip` and `storage_driver`, itself or with check_options.
# shellcheck shell=bash

program=$(basename "$0" .sh)
uid=65532
machine=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')

# The options of all checks, for their usage().
CHECK_OPTIONS="[--official] [--storage-driver NAME] [--work FOLDER] [--or-skip] [--keep]"
check_options_usage() {
  cat <<'TEXT'
  --official             use the base images that the Dockerfiles name, pulled from their registries
  --storage-driver NAME  how layers are stored: overlay (default), or vfs where overlay cannot be mounted (slower)
  --work FOLDER          work there and leave it behind; what another script has built there is not built again
  --or-skip              where the machine allows no containers, say why and exit with 0
  --keep                 leave the working folder behind, and say where it is
  --help                 this text
TEXT
}

# check_options FLAGS ARGUMENT… reads the options of a check. FLAGS are those of this check alone, separated by blanks; each
# sets the variable of its name to yes.
check_options() {
  local flags=$1 name
  shift
  official=no
  storage_driver=overlay
  work=
  or_skip=no
  keep=no
  for name in $flags; do declare -g "${name//-/_}=no"; done
  while (($# > 0)); do
    name=${1#--}
    case $1 in
      --official | --or-skip | --keep) declare -g "${name//-/_}=yes" ;;
      --storage-driver | --work)
        if (($# < 2)); then
          echo "$program: $1 needs a value; see --help" >&2
          exit 2
        fi
        declare -g "${name//-/_}=$2"
        shift
        ;;
      --help | -h)
        usage
        exit 0
        ;;
      *)
        if [[ $1 != --* || " $flags " != *" $name "* ]]; then
          echo "$program: unknown option $1; see --help" >&2
          exit 2
        fi
        declare -g "${name//-/_}=yes"
        ;;
    esac
    shift
  done
}

# need PROGRAM… exits with 2 if one is missing.
need() {
  local name
  for name in "$@"; do
    if ! command -v "$name" >/dev/null; then
      echo "$program: $name is missing; see --help" >&2
      exit 2
    fi
  done
}

# Why containers cannot run on this machine; empty if they can.
impossible() {
  if ((EUID != 0)); then
    echo 'only root may assemble root file systems and change to another user'
  elif ! unshare --mount --pid --net --fork true 2>/dev/null; then
    echo 'this machine does not allow new mount, process and network namespaces'
  elif ! unshare --mount --propagation private mount -t tmpfs none /mnt 2>/dev/null; then
    echo 'this machine does not allow mounts'
  fi
}

# Where containers cannot run: says why, and exits with 2, or with 0 if the script was called with --or-skip.
skip_if_impossible() {
  local reason
  reason=$(impossible)
  if [[ -z $reason ]]; then return; fi
  if [[ $or_skip == yes ]]; then
    echo "$program: SKIPPED, nothing was checked: $reason"
    exit 0
  fi
  echo "$program: $reason" >&2
  exit 2
}

# enter_namespace ARGUMENT… starts the script again in a mount namespace of its own: whatever the storage leaves mounted
# goes when the last process ends, and the places that podman, buildah and runc share with every other use of them are
# empty and private in there.
enter_namespace() {
  if [[ ${THREADWARDEN_NAMESPACE:-} != yes ]]; then
    THREADWARDEN_NAMESPACE=yes exec unshare --mount --propagation private "$0" "$@"
  fi
  local folder
  for folder in /dev/shm /run/libpod /run/netns /run/runc /run/containers /var/cache/containers /var/lib/containers; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=1777 threadwarden "$folder"
  done
  if [[ -z $work ]]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/threadwarden-container.XXXXXX")
  else
    keep=yes
    mkdir -p "$work"
  fi
  export TMPDIR=$work/tmp
  mkdir -p "$TMPDIR"
  # PostgreSQL runs as another user, on a folder below.
  chmod 711 "$work"
  store=(--root "$work/storage" --runroot "$work/run" --storage-driver "$storage_driver")
  cgroup=threadwarden-check-$$
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# podman's own limits, and those of a Compose file, may be more than a machine allows.
limit_containers() {
  cat >"$work/containers.conf" <<'TOML'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
log_driver = "k8s-file"
TOML
  export CONTAINERS_CONF=$work/containers.conf
}

buildah_() { buildah "${store[@]}" "$@"; }
podman_() {
  podman "${store[@]}" --tmpdir "$work/libpod" --runtime runc --cgroup-manager cgroupfs --events-backend none "$@"
}

cleanup() {
  local status=$?
  trap - EXIT INT TERM
  podman_ pod rm --force --all --time 2 >/dev/null 2>&1 || true
  podman_ rm --force --all --time 2 >/dev/null 2>&1 || true
  podman_ volume rm --all --force >/dev/null 2>&1 || true
  podman_ image unmount --all >/dev/null 2>&1 || true
  # Innermost mounts first; --one-file-system, so that nothing that is mounted after all is emptied.
  awk -v under="$work/" 'index($2, under) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r point; do
    umount "$point" 2>/dev/null || umount --lazy "$point" || true
  done
  if [[ $keep == yes ]]; then
    echo "the working folder is $work"
  else
    rm -rf --one-file-system "$work"
  fi
  find /sys/fs/cgroup -maxdepth 4 -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
  exit "$status"
}

# ---------------------------------------------------------------------------------------------------------------------
# Steps and checks

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
    echo "$program: failed: $title" >&2
    exit 1
  fi
  echo "#   done in $((SECONDS - begun)) s"
}

# once_in_folder NAME TITLE COMMAND… is a step that another script with the same working folder may have done already.
once_in_folder() {
  local stamp=$work/done.$1
  shift
  if [[ -e $stamp ]]; then return; fi
  step "$@"
  touch "$stamp"
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
