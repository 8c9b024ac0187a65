"""What the repository itself brings into a guest: modules, provider, skuad.

Assumed of the other parts:
  drivers/build-modules HEADERS OUT [MAKE ARGUMENTS]   leaves OUT/skua.ko and OUT/skua_ib.ko
  tools/provider/drop-in.sh TREE                       makes TREE, of rdma-core, have providers/skua
  make -C tools/skuad all OUT=DIR                      leaves DIR/skuad and DIR/skuactl
  make -C tools/traffic OUT=DIR                        leaves DIR/rdma_traffic
"""

import glob
import os
import shutil

import chroot
import images
import paths
import root
import sources
from stage import Stage

DRIVER_INPUTS = [paths.repo(name) for name in ('Kbuild', 'drivers', 'include', 'uapi')]
PROVIDER_INPUTS = [paths.repo(name) for name in ('tools/provider', 'include/skua', 'uapi')]
SKUAD_INPUTS = [paths.repo(name) for name in ('tools/skuad', 'include/skua')]

PROVIDER_TREE = os.path.join(paths.BUILD, 'rdma-core')      # with the provider dropped in
CMAKE = '-GNinja -DIN_PLACE=1 -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DENABLE_RESOLVE_NEIGH=0'


def headers(series):
    """What modules for a kernel are built against."""
    if series == 'debug':
        return images.DEBUG_BUILD + '/build'
    return '/usr/src/linux-headers-' + root.releases()[series]


def modules(series):
    return os.path.join(paths.MODULES, series)


def build_modules(series, log, *arguments, out=None):
    """Compile the modules for a series; more arguments go to make."""
    chroot.run([paths.repo('drivers/build-modules'), headers(series),
                out or modules(series) + '.build', *arguments],
               stdout=log, stderr=log, check=True, timeout=300)


def _modules(series):
    def make(log):
        build_modules(series, log)
        os.makedirs(modules(series), exist_ok=True)
        for name in ('skua.ko', 'skua_ib.ko'):
            # Without debugging information they load faster; it stays in the build directory.
            chroot.run(['strip', '--strip-debug', '-o', os.path.join(modules(series), name),
                        os.path.join(modules(series) + '.build', name)], stdout=log, stderr=log, check=True)
    return make


MODULES_STAGES = {
    series: Stage('modules-' + series, _modules(series),
                  lambda series=series: [*DRIVER_INPUTS, headers(series), images._root_stamp()],
                  os.path.join(modules(series), 'skua_ib.ko'), 300)
    for series in images.KERNEL_STAGES}


def _provider(log):
    if not os.path.isdir(PROVIDER_TREE):
        shutil.copytree(sources.RDMA_CORE, PROVIDER_TREE + '.new', symlinks=True)
        os.rename(PROVIDER_TREE + '.new', PROVIDER_TREE)
    chroot.run('''{drop} {tree}
        mkdir -p {tree}/build && cd {tree}/build
        [ -e build.ninja ] || cmake {cmake} ..
        pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\\(.*\\)")/\\1/p' ../CMakeLists.txt)
        ninja skua-rdmav$pabi'''.format(drop=paths.repo('tools/provider/drop-in.sh'), tree=PROVIDER_TREE, cmake=CMAKE),
        stdout=log, stderr=log, check=True, timeout=300)
    os.makedirs(paths.PROVIDER, exist_ok=True)
    library, = glob.glob(PROVIDER_TREE + '/build/lib/libskua-rdmav*.so')
    for name in (library, paths.repo('tools/provider/skua.driver')):
        shutil.copy(name, paths.PROVIDER)


PROVIDER_STAGE = Stage('provider', _provider, lambda: [*PROVIDER_INPUTS, images._root_stamp(), CMAKE],
                       os.path.join(paths.PROVIDER, 'skua.driver'), 300)


def _skuad(log):
    chroot.run('make -C {0} -j$(nproc) OUT={1} all'.format(paths.repo('tools/skuad'), paths.SKUAD),
               stdout=log, stderr=log, check=True, timeout=300)


SKUAD_STAGE = Stage('skuad', _skuad, lambda: [*SKUAD_INPUTS, images._root_stamp()],
                    os.path.join(paths.SKUAD, 'skuad'), 180)


def _traffic(log):
    chroot.run(['make', '-C', paths.repo('tools/traffic'), 'OUT=' + paths.TRAFFIC],
               stdout=log, stderr=log, check=True, timeout=60)


TRAFFIC_STAGE = Stage('traffic', _traffic, lambda: [paths.repo('tools/traffic'), images._root_stamp()],
                      os.path.join(paths.TRAFFIC, 'rdma_traffic'), 60)


def _selftests(log):
    kselftest = os.path.join(sources.linux('7.2'), 'tools/testing/selftests')
    shutil.rmtree(paths.SELFTESTS, ignore_errors=True)
    chroot.run(['make', '-C', paths.repo('selftests'), 'install', 'OUT=' + paths.SELFTESTS, 'KSELFTEST=' + kselftest],
               stdout=log, stderr=log, check=True, timeout=120)


SELFTESTS_STAGE = Stage('selftests', _selftests, lambda: [paths.repo('selftests'), images._root_stamp()],
                        os.path.join(paths.SELFTESTS, 'run_selftests.sh'), 120)


def guest_stages(series):
    """What a guest of this kernel needs, without NICs."""
    return [root.STAGE, images.IMAGE_STAGE, images.KERNEL_STAGES[series], TRAFFIC_STAGE]


def stages(series):
    """What a guest with NICs needs, in order."""
    return guest_stages(series) + [sources.RDMA_CORE_STAGE, SKUAD_STAGE, MODULES_STAGES[series], PROVIDER_STAGE]
