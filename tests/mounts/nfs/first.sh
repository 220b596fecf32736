#!/bin/sh
# The first process of the guest: its root is the host's, read only. Lays a memory of its own over it, so that nothing that is
# written there stays, shows it the one folder of the host that it may write to, and goes on inside.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
here=${0%/*}
. "$here/settings" # modules, shared
insmod "$modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko" || echo o >/proc/sysrq-trigger
mount -t tmpfs memory /mnt
mkdir /mnt/changes /mnt/scratch /mnt/all
mount -t overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/scratch all /mnt/all
for kind in proc sysfs devtmpfs; do
    case $kind in proc) at=proc ;; sysfs) at=sys ;; devtmpfs) at=dev ;; esac
    mount -t $kind $kind /mnt/all/$at
done
mkdir -p /mnt/all/dev/shm /mnt/all/lib/modules
ln -s "$modules/$(uname -r)" /mnt/all/lib/modules/
for at in run dev/shm; do mount -t tmpfs memory /mnt/all/$at; done
mkdir -p "/mnt/all$shared"
mount -t hostfs -o "$shared" shared "/mnt/all$shared"
exec chroot /mnt/all /bin/sh "$shared/nfs/serve.sh" "$shared"
