# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ceph's benchmark of its messenger. Its package brings much that no guest needs, so that the image has none of it: two
programs and a library are unpacked beside the selftests, which guests share."""

import os

from skualab.host import paths
from skualab.products import images
from skualab.roots import apt, chroot
from skualab.roots.stage import Stage

PACKAGES = ['ceph-test', 'libgoogle-perftools4t64']
PARTS = ['*/ceph_perf_msgr_*', '*/libtcmalloc.so*']
DIRECTORY = os.path.join(paths.SELFTESTS, 'ceph')


def _fetch(log):
    apt.update(log)
    return apt.download(PACKAGES, log)


def _make(log):
    script = ['rm -rf {0} && mkdir -p {0}'.format(chroot.quote(DIRECTORY))]
    for package, part in zip(_fetch(log), PARTS):
        script.append('dpkg-deb --fsys-tarfile %s | tar -x -C %s --transform "s,.*/,," --wildcards %s' % (
            chroot.quote(package), chroot.quote(DIRECTORY), chroot.quote(part)))
    chroot.run('\n'.join(script), stdout=log, stderr=log, check=True, timeout=60)


# What else the programs need is in the image, and has to be of the same release.
STAGE = Stage('ceph', _make, lambda: [*PACKAGES, *PARTS, images.root_stamp()], DIRECTORY, 60, _fetch)
