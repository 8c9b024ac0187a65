"""Programs of this repository: skuad, what guests have besides stock programs, and the tests that run in guests.

Assumed of the other parts:
  make -C tools/skuad all OUT=DIR                      leaves DIR/skuad and DIR/skuactl
  make -C tools/traffic OUT=DIR                        leaves DIR/rdma_traffic, DIR/listen_first.so
"""

import os
import shutil

from skualab.host import paths
from skualab.products import images, sources
from skualab.roots import chroot
from skualab.roots.stage import Stage
from skualab.target.distro import DISTRO

SKUAD_INPUTS = [paths.repo(name) for name in ('tools/skuad', 'include/skua')]


def _skuad(log):
    chroot.run('make -C {0} -j$(nproc) OUT={1} all'.format(paths.repo('tools/skuad'), paths.SKUAD),
               stdout=log, stderr=log, check=True, timeout=300)


SKUAD_STAGE = Stage('skuad', _skuad, lambda: [*SKUAD_INPUTS, images.root_stamp()],
                    os.path.join(paths.SKUAD, 'skuad'), 180)


def _traffic(log):
    chroot.run(['make', '-C', paths.repo('tools/traffic'), 'OUT=' + paths.TRAFFIC],
               stdout=log, stderr=log, check=True, timeout=60)


TRAFFIC_STAGE = Stage('traffic', _traffic, lambda: [paths.repo('tools/traffic'), images.root_stamp()],
                      os.path.join(paths.TRAFFIC, 'listen_first.so'), 60)


def _selftests(log):
    kselftest = os.path.join(sources.linux(DISTRO.newest), 'tools/testing/selftests')
    shutil.rmtree(paths.SELFTESTS, ignore_errors=True)
    chroot.run('make -C {0} -j$(nproc) install OUT={1} KSELFTEST={2}'.format(
        paths.repo('selftests'), paths.SELFTESTS, kselftest), stdout=log, stderr=log, check=True, timeout=120)


SELFTESTS_STAGE = Stage('selftests', _selftests, lambda: [*map(paths.repo, ('selftests', 'uapi', 'include')), images.root_stamp()],
                        os.path.join(paths.SELFTESTS, 'run_selftests.sh'), 120)
