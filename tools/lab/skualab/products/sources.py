"""Unpacked sources: rdma-core as the root has it and as the next release will, and what checks need.

build/src/rdma-core      the whole tree, of stable; the provider is built in a copy of it
build/src/rdma-core-testing
build/src/linux-SERIES   checkpatch.pl and the kselftest headers, which Debian ships nowhere else
build/src/checkers       programs that look at scripts, which no guest needs
"""

import os
from functools import partial

from skualab.host import paths
from skualab.roots import apt, chroot
from skualab.roots.stage import Stage
from skualab.target.distro import DISTRO

# By the role of an rdma-core: how the name of what is made for it ends.
TAIL = {role: '' if role == DISTRO.rdma_core else '-' + role for role in DISTRO.rdma_cores}
LINUX_PARTS = ['scripts/checkpatch.pl', 'scripts/spelling.txt', 'scripts/const_structs.checkpatch',
               'tools/testing/selftests/kselftest*', 'tools/testing/selftests/lib.mk',
               'tools/include/linux/compiler*', 'tools/include/uapi']
CHECKERS = os.path.join(paths.SOURCES, 'checkers')
CHECKER_PACKAGES = ['shellcheck', 'python3-pyflakes']


def linux(series):
    return os.path.join(paths.SOURCES, 'linux-' + series)


def rdma_core(role):
    return os.path.join(paths.SOURCES, 'rdma-core' + TAIL[role])


def _fetch_rdma_core(role, log):
    apt.update(log)
    return apt.source('rdma-core', DISTRO.rdma_cores[role], log)


def _fetch(packages, log):
    apt.update(log)
    return apt.download(packages, log)


def _rdma_core(role):
    def make(log):
        tarball = _fetch_rdma_core(role, log)
        chroot.run('rm -rf {0} && mkdir -p {0} && tar -xf {1} -C {0} --strip-components=1'.format(
            chroot.quote(rdma_core(role)), chroot.quote(tarball)), stdout=log, stderr=log, check=True, timeout=120)
    return make


def _linux(series):
    def make(log):
        package, = _fetch([DISTRO.source_package + series], log)
        where, name = linux(series), DISTRO.source_package + series
        wild = ' '.join(chroot.quote(name + '/' + part) for part in LINUX_PARTS)
        chroot.run('rm -rf {0} && mkdir -p {0} && dpkg-deb --fsys-tarfile {1} | tar -xO ./usr/src/{2}.tar.xz '
                   '| xz -dcT0 | tar -x -C {0} --strip-components=1 --wildcards {3}'.format(
                       chroot.quote(where), chroot.quote(package), name, wild),
                   stdout=log, stderr=log, check=True, timeout=300)
    return make


def _checkers(log):
    packages = _fetch(CHECKER_PACKAGES, log)
    script = ['rm -rf {0} && mkdir -p {0}'.format(chroot.quote(CHECKERS))]
    script += ['dpkg-deb -x ' + chroot.quote(name, CHECKERS) for name in packages]
    chroot.run('\n'.join(script), stdout=log, stderr=log, check=True, timeout=60)


RDMA_CORE_STAGES = {role: Stage('rdma-core' + TAIL[role], _rdma_core(role),
                                lambda: [open(paths.STAMPS + '/root').read()], rdma_core(role), 120,
                                partial(_fetch_rdma_core, role))
                    for role in DISTRO.rdma_cores}
LINUX_STAGES = {series: Stage('linux-' + series, _linux(series), lambda: LINUX_PARTS, linux(series), 300,
                              partial(_fetch, [DISTRO.source_package + series]))
                for series in DISTRO.series}
CHECKERS_STAGE = Stage('checkers', _checkers, lambda: CHECKER_PACKAGES, CHECKERS, 60, partial(_fetch, CHECKER_PACKAGES))
