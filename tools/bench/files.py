# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NFS 4.2 between two guests, over each transport of pair.py. The server's files are in memory, and the user's fio goes
past its page cache."""

from pair import must, TRANSPORTS

PORTS = {'rdma': 20049, 'tcp': 2049}
SERVE = '''set -e
mkdir -p /srv/files
mount -t tmpfs files /srv/files
head -c 64M /dev/urandom >/srv/files/data
modprobe -a nfsd rpcrdma
mount -t nfsd nfsd /proc/fs/nfsd
echo 10 >/proc/fs/nfsd/nfsv4gracetime
rpcbind
exportfs -o rw,fsid=0,no_root_squash,insecure '*:/srv/files'
rpc.mountd -p 20048
rpc.nfsd -V 4.2 --rdma={rdma} 4
echo Y >/proc/fs/nfsd/v4_end_grace || :
'''.format(**PORTS)
ATTACH = '''set -e
modprobe rpcrdma
mkdir -p /mnt/nfs
mount -t nfs -o vers=4.2,proto={type},port={port} {address}:/ /mnt/nfs
grep -q '/mnt/nfs.*proto={type}' /proc/mounts
'''


def measure(pair):
    """{transport: Pair.measure()}"""
    found = {}
    must(pair.server, SERVE)
    for transport, (kind, address) in TRANSPORTS.items():
        must(pair.user, ATTACH.format(type=kind, port=PORTS[kind], address=address))
        found[transport] = pair.measure('/mnt/nfs/data')
        must(pair.user, 'umount /mnt/nfs')
    return found
