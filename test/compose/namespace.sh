#!/bin/sh
# Runs a command with the files and host names that the containers of deploy/compose.yaml have, and with a network of its own, so
# that its ports are free. Arguments: a folder with hosts, etc/ and secrets/, then the command.
set -eu
scene=$1
shift
ip link set lo up
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
cp -a /etc/. /mnt/
cp "$scene/hosts" /mnt/hosts
cp -r "$scene/etc/." /mnt/
mount --bind /mnt /etc
mount -t tmpfs -o mode=755 tmpfs /run
cp -r "$scene/secrets" /run/secrets
exec "$@"
