#!/bin/bash
# Starts systemd as process 1 of new namespaces, with the shipped units and nothing of the machine's own. Its file systems are
# private: the machine keeps nothing of it. Arguments: a folder with the files of the test, the repository, the program of Node.
set -euo pipefail
scene=$1 repository=$2 node=$3

# Private to the namespace, and shared in it: systemd mounts credentials in a process of its own.
mount --make-rprivate /
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /mnt
cp -a /etc/. /mnt/
mount --bind /mnt /etc
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /usr/local
mount -t tmpfs -o mode=755 tmpfs /opt
mkdir -p /usr/local/bin /opt/threadwarden
for part in dist policies config node_modules; do
  mkdir "/opt/threadwarden/$part"
  mount --bind "$repository/$part" "/opt/threadwarden/$part"
done
cp "$repository/package.json" /opt/threadwarden/
touch /opt/node
mount --bind "$node" /opt/node
printf '#!/bin/sh\nexec /opt/node /opt/threadwarden/dist/cli.js "$@"\n' >/usr/local/bin/threadwarden
chmod 755 /usr/local/bin/threadwarden

# No unit of the machine: they would change its kernel's settings and devices.
mount -t tmpfs -o mode=755 tmpfs /usr/lib/systemd/system
mount -t tmpfs -o mode=755 tmpfs /usr/lib/systemd/system-generators
rm -rf /etc/systemd/system
mkdir -p /etc/systemd/system
for target in sysinit basic shutdown sockets network-online multi-user scene; do
  printf '[Unit]\nDefaultDependencies=no\n' >"/usr/lib/systemd/system/$target.target"
done
cp "$repository"/deploy/systemd/threadwarden.{service,socket} /etc/systemd/system/
cp -r "$scene"/drop-ins/. /etc/systemd/system/
mount -t tmpfs -o mode=755 tmpfs /run
systemd-sysusers "$repository/deploy/systemd/threadwarden.sysusers.conf"
mkdir -p /etc/threadwarden/secrets
chmod 700 /etc/threadwarden/secrets
mount --bind "$scene/etc" /etc/threadwarden
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=namespaces PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
  /lib/systemd/systemd --system --unit=scene.target --log-target=console --show-status=no
