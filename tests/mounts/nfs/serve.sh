#!/bin/sh
# Inside the guest: starts the kernel's NFS server on a disk of the guest's own, mounts its two exports from two clients (the
# second in a network namespace, so that it has an identity and caches of its own), and does what it was started for.
#   /nfs/sync  /nfs/sync-too  /nfs/async  /nfs/async-too       what it says goes to FOLDER/out, its exit code to FOLDER/code
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
folder=$1
power_off() { echo o >/proc/sysrq-trigger; sleep 60; }
must() { "$@" || { echo "failed: $*"; power_off; }; }
too() { nsenter --net=/run/netns/too "$@"; }

must modprobe -a nfsd nfsv4 veth
hostname guest
mkdir -p /disk /exports/sync /exports/async /nfs/sync /nfs/sync-too /nfs/async /nfs/async-too /run/rpc_pipefs
must mount /dev/ubda /disk
must mount -t tmpfs memory /var/lib/nfs
mkdir /var/lib/nfs/sm /var/lib/nfs/nfsdcld
: >/var/lib/nfs/etab
: >/var/lib/nfs/rmtab
must mount -t rpc_pipefs pipes /run/rpc_pipefs
must mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs memory /exports # the root of the exports: what lies over the host's root cannot be exported
ip link set lo up
must ip netns add too
ip link add here type veth peer name there netns too
ip address add 10.9.0.1/24 dev here
ip link set here up
too ip address add 10.9.0.2/24 dev there
too ip link set there up
too unshare --mount sh -c 'mount -t sysfs too /sys && echo too >/sys/fs/nfs/net/nfs_client/identifier'
rpcbind
nfsdcld # it remembers that there were no clients before: no time of grace
number=0
must exportfs -i -o ro,no_root_squash,no_subtree_check,crossmnt,fsid=0 '*:/exports'
for kind in sync async; do
    number=$((number + 1))
    mkdir -p /disk/$kind /exports/$kind
    chmod 777 /disk/$kind
    must mount --bind /disk/$kind /exports/$kind
    must exportfs -i -o rw,$kind,no_root_squash,no_subtree_check,fsid=$number "*:/exports/$kind"
done
must rpc.mountd -N 3
must rpc.nfsd -N 3 8
for kind in sync async; do
    must mount -t nfs -o vers=4.1 127.0.0.1:/$kind /nfs/$kind
    must too mount -t nfs -o vers=4.1 10.9.0.1:/$kind /nfs/$kind-too
done
sh "$folder/work" >"$folder/out" 2>&1
echo $? >"$folder/code"
umount -f /nfs/sync /nfs/sync-too /nfs/async /nfs/async-too
rpc.nfsd 0
umount /exports/sync /exports/async
umount /disk
power_off
