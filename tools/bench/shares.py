# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SMB 3.1.1 between two guests, over each transport of pair.py: SMB Direct where it is RDMA. The server's files are in
memory, and the user's fio goes past its page cache. Debian's kernels have no SMB Direct, so these guests run the debug
kernel, in which all that a kernel does takes many times as long: only the ratios mean something."""

from pair import must, TRANSPORTS

KERNEL, MEMORY = 'debug', '2G'
# What its ksmbd and cifs do wrong is told in selftests/ulp/smb.sh.
SERVE = '''set -e
. /mnt/share/ulp/debug.sh
warn_of_dma 0
mkdir -p /srv/share /etc/ksmbd
mount -t tmpfs files /srv/share
chmod 777 /srv/share
head -c 64M /dev/urandom >/srv/share/data
chmod 666 /srv/share/data
modprobe ksmbd
printf '%s\\n' '[global]' 'server signing = disabled' 'store dos attributes = no' \\
    '[files]' 'path = /srv/share' 'read only = no' >/etc/ksmbd/ksmbd.conf
ksmbd.adduser -a -p word tester
ksmbd.mountd
'''
ATTACH = '''set -e
. /mnt/share/ulp/debug.sh
warn_of_hangs_after 600
mkdir -p /mnt/smb
mount -t cifs -o {option}vers=3.1.1,username=tester,password=word,rsize=1048576,wsize=1048576 //{address}/files /mnt/smb
'''
OPTIONS = {'rdma': 'rdma,', 'tcp': ''}


def measure(pair):
    """{transport: Pair.measure()}"""
    found = {}
    must(pair.server, SERVE)
    for transport, (kind, address) in TRANSPORTS.items():
        must(pair.user, ATTACH.format(option=OPTIONS[kind], address=address))
        found[transport] = pair.measure('/mnt/smb/data')
        must(pair.user, 'umount /mnt/smb')
    return found
