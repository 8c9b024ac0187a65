"""Debug information of Debian's kernels, for gdb: types and lines of vmlinux and of the modules that are RDMA or use it.

`lab build debuginfo` fetches it, 1 GB for each kernel. Nothing else needs it.
"""

import glob
import os
from functools import partial

from skualab.products import kernels
from skualab.roots import apt, chroot, root
from skualab.roots.stage import Stage
from skualab.target.distro import DISTRO

PARTS = ['*/vmlinux-*', *('*/kernel/' + part for part in ('drivers/infiniband', 'drivers/nvme', 'net/rds', 'net/sunrpc'))]


def directory(series):
    return kernels.directory(series) + '.debuginfo'


def _fetch(series, log):
    apt.update(log)
    return apt.download([DISTRO.debug_package % root.releases()[series]], log)


def _make(series):
    def make(log):
        package, = _fetch(series, log)
        # It looks into the whole of the package, which has 7 GB.
        chroot.run('rm -rf {0} {0}.new && mkdir -p {0}.new && dpkg-deb --fsys-tarfile {1} | tar -x -C {0}.new --wildcards {2} '
                   '&& mv {0}.new {0}'.format(chroot.quote(directory(series)), chroot.quote(package),
                                              ' '.join(map(chroot.quote, PARTS))),
                   stdout=log, stderr=log, check=True, timeout=SECONDS)
    return make


def files(series):
    """Those of the kernel that guests boot by module, where they were fetched; the kernel itself is ''."""
    found, release = {}, root.releases().get(series)
    for path in glob.glob('%s/**/vmlinux-%s' % (directory(series), release), recursive=True):
        found[''] = path
    for path in glob.glob('%s/**/modules/%s/**/*.ko*' % (directory(series), release), recursive=True):
        found[os.path.basename(path).split('.')[0].replace('-', '_')] = path
    return found


SECONDS = 900
STAGES = {series: Stage('debuginfo-' + series, _make(series), lambda series=series: [root.releases()[series], PARTS],
                        directory(series), SECONDS, partial(_fetch, series))
          for series in DISTRO.series}
