"""Programs of this repository: skuad, what guests have besides stock programs, and the tests that run in guests.

Assumed of the other parts:
  make -C tools/skuad all OUT=DIR                      leaves DIR/skuad and DIR/skuactl
  make -C tools/traffic OUT=DIR                        leaves DIR/rdma_traffic, DIR/listen_first.so
"""

import filecmp
import os
import shutil

from skualab.host import paths
from skualab.products import images, sources
from skualab.roots import chroot
from skualab.roots.stage import digest, Stage, Tree
from skualab.target.distro import DISTRO

# Of its tests, and of what runs them, nothing is linked into skuad.
SKUAD_SOURCES = Tree(paths.repo('tools/skuad'), 'harness', 'fuzz', 'test[_-]*', 'run-test.sh', 'check-*', 'completion.bash')
SKUAD_INPUTS = [SKUAD_SOURCES, paths.repo('include/skua')]


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


SELFTESTS_BUILD, FRESH = paths.SELFTESTS + '.build', paths.SELFTESTS + '.new'


def _selftests(log):
    linux = sources.linux(DISTRO.newest)
    # Compilers, libraries and the headers of kselftest are not in make's dependencies.
    _keep_if(SELFTESTS_BUILD, digest(images.root_stamp(), os.stat(linux).st_mtime_ns))
    make = 'make -C %s -j$(nproc) BUILD=%s KSELFTEST=%s/tools/testing/selftests OUT=%%s ' % (
        paths.repo('selftests'), SELFTESTS_BUILD, linux)
    chroot.run('%s all; rm -rf %s; %s install' % (make % paths.SELFTESTS, FRESH, make % FRESH),
               stdout=log, stderr=log, check=True, timeout=180)
    _become(paths.SELFTESTS, FRESH)
    shutil.rmtree(FRESH)


def _become(place, fresh):
    """The tree @place becomes what @fresh is, file by file: a guest that runs tests from it meanwhile keeps those that
    did not change."""
    os.makedirs(place, exist_ok=True)
    for name in set(os.listdir(place)) - set(os.listdir(fresh)):
        path = os.path.join(place, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    for name in os.listdir(fresh):
        ours, new = os.path.join(place, name), os.path.join(fresh, name)
        if os.path.isdir(new):
            _become(ours, new)
        elif not os.path.exists(ours) or not _same(ours, new):
            os.replace(new, ours)


def _same(one, other):
    return os.stat(one).st_mode == os.stat(other).st_mode and filecmp.cmp(one, other, shallow=False)


def _keep_if(directory, made_of):
    """Keep what was compiled there only if it was made of the same."""
    mark = os.path.join(directory, '.made-of')
    try:
        with open(mark) as file:
            if file.read() == made_of:
                return
    except OSError:
        pass
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with open(mark, 'w') as file:
        file.write(made_of)


SELFTESTS_STAGE = Stage('selftests', _selftests, lambda: [*map(paths.repo, ('selftests', 'uapi', 'include')), images.root_stamp()],
                        os.path.join(paths.SELFTESTS, 'run_selftests.sh'), 180)
