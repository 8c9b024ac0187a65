"""Unpacked sources: rdma-core as the root has it, and of the kernel what checks need.

build/src/rdma-core      the whole tree; the provider is built in a copy of it
build/src/linux-SERIES   checkpatch.pl and the kselftest headers, which Debian ships nowhere else
"""

import os
import subprocess

import apt
import chroot
import paths
from root import SERIES
from stage import Stage

RDMA_CORE = os.path.join(paths.SOURCES, 'rdma-core')
LINUX_PARTS = ['scripts/checkpatch.pl', 'scripts/spelling.txt', 'scripts/const_structs.checkpatch',
               'tools/testing/selftests/kselftest*', 'tools/testing/selftests/lib.mk',
               'tools/include/linux/compiler*', 'tools/include/uapi']


def linux(series):
    return os.path.join(paths.SOURCES, 'linux-' + series)


def _rdma_core(log):
    apt.update(log)
    tarball = apt.source('rdma-core', log)
    chroot.run('rm -rf {0} && mkdir -p {0} && tar -xf {1} -C {0} --strip-components=1'.format(
        chroot.quote(RDMA_CORE), chroot.quote(tarball)), stdout=log, stderr=log, check=True, timeout=120)


def _linux(series):
    def make(log):
        apt.update(log)
        package, = apt.download(['linux-source-' + series], log)
        where, name = linux(series), 'linux-source-' + series
        wild = ' '.join(chroot.quote(name + '/' + part) for part in LINUX_PARTS)
        chroot.run('rm -rf {0} && mkdir -p {0} && dpkg-deb --fsys-tarfile {1} | tar -xO ./usr/src/{2}.tar.xz '
                   '| xz -dcT0 | tar -x -C {0} --strip-components=1 --wildcards {3}'.format(
                       chroot.quote(where), chroot.quote(package), name, wild),
                   stdout=log, stderr=log, check=True, timeout=300)
    return make


RDMA_CORE_STAGE = Stage('rdma-core', _rdma_core, lambda: [open(paths.STAMPS + '/root').read()], RDMA_CORE, 120)
LINUX_STAGES = {series: Stage('linux-' + series, _linux(series), lambda: LINUX_PARTS, linux(series), 300)
                for series in SERIES}
