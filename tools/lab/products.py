"""What the repository itself brings into a guest: modules, provider, skuad.

Assumed of the other parts:
  drivers/build-modules HEADERS OUT [MAKE ARGUMENTS]   leaves OUT/MODULE.ko, each of MODULES
  tools/provider/drop-in.sh TREE                       makes TREE, of rdma-core, have providers/skua
  make -C tools/skuad all OUT=DIR                      leaves DIR/skuad and DIR/skuactl
  make -C tools/traffic OUT=DIR                        leaves DIR/rdma_traffic, DIR/listen_first.so
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

MODULES = ('skua', 'skua_ib', 'skua_selftest')
DRIVER_INPUTS = [paths.repo(name) for name in ('Kbuild', 'drivers', 'include', 'selftests/kernel', 'uapi')]
PROVIDER_INPUTS = [paths.repo(name) for name in ('tools/provider', 'include/skua', 'uapi')]
SKUAD_INPUTS = [paths.repo(name) for name in ('tools/skuad', 'include/skua')]

LIBDIR = 'usr/lib/x86_64-linux-gnu'
CMAKE = ('-GNinja -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=/%s '
         '-DNO_PYVERBS=1 -DNO_MAN_PAGES=1' % LIBDIR)


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
        for name in (module + '.ko' for module in MODULES):
            # Without debugging information they load faster; it stays in the build directory.
            chroot.run(['strip', '--strip-debug', '-o', os.path.join(modules(series), name),
                        os.path.join(modules(series) + '.build', name)], stdout=log, stderr=log, check=True)
    return make


MODULES_STAGES = {
    series: Stage('modules-' + series, _modules(series),
                  lambda series=series: [*DRIVER_INPUTS, headers(series), images._root_stamp()],
                  os.path.join(modules(series), 'skua_ib.ko'), 300)
    for series in images.KERNEL_STAGES}


def provider_tree(role):
    """rdma-core with the provider dropped in."""
    return os.path.join(paths.BUILD, 'rdma-core' + sources.TAIL[role])


def provider(role):
    """What of rdma-core a guest gets, a tree: of stable libskua alone, since the root has the rest."""
    return paths.PROVIDER + sources.TAIL[role]


def _fresh_tree(role):
    # A copy, made anew when the source is: what was compiled in it is worth keeping.
    source, tree = sources.rdma_core(role), provider_tree(role)
    made_of = str(os.stat(source).st_mtime_ns)
    try:
        with open(tree + '/.made-of') as file:
            if file.read() == made_of:
                return
    except OSError:
        pass
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree, symlinks=True)
    with open(tree + '/.made-of', 'w') as file:
        file.write(made_of)


# Of an rdma-core that the root does not have, a guest gets these besides libskua. perftest wants those of
# other devices, too, which go with one libibverbs only.
OTHERS = {'stable': [], 'testing': ['mlx5', 'efa', 'hns']}
LIBRARIES = {'stable': [], 'testing': ['libibverbs.so.1', 'librdmacm.so.1',
                                       *('lib%s.so.1' % name for name in OTHERS['testing'])]}
PROGRAMS = {'stable': [], 'testing': ['ibv_devices', 'ibv_devinfo', 'ibv_rc_pingpong', 'rping']}


def _provider(role):
    def make(log):
        _fresh_tree(role)
        tree, out = provider_tree(role), provider(role)
        chroot.run('''{drop} {tree}
            mkdir -p {tree}/build && cd {tree}/build
            [ -e build.ninja ] || cmake {cmake} ..
            pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\\(.*\\)")/\\1/p' ../CMakeLists.txt)
            ninja skua-rdmav$pabi {rest}'''.format(drop=paths.repo('tools/provider/drop-in.sh'), tree=tree,
                                                   cmake=CMAKE, rest=' '.join([*OTHERS[role], *PROGRAMS[role]])),
                   stdout=log, stderr=log, check=True, timeout=300)
        shutil.rmtree(out, ignore_errors=True)
        library, = glob.glob(tree + '/build/lib/libskua-rdmav*.so')
        _copy(library, out, LIBDIR + '/libibverbs')
        for name in LIBRARIES[role]:
            _copy(tree + '/build/lib/' + name, out, LIBDIR)
        for name in PROGRAMS[role]:
            _copy(tree + '/build/bin/' + name, out, 'usr/bin')
        if role != 'stable':
            _silence(out)
        _copy(paths.repo('tools/provider/skua.driver'), out, 'etc/libibverbs.d')
    return make


def _silence(out):
    # The root's providers are of another private ABI: libibverbs would complain of each.
    os.makedirs(out + '/etc/libibverbs.d')
    for name in os.listdir(paths.ROOT + '/etc/libibverbs.d'):
        open(os.path.join(out, 'etc/libibverbs.d', name), 'w').close()


def _copy(source, out, place):
    os.makedirs(os.path.join(out, place), exist_ok=True)
    shutil.copy(source, os.path.join(out, place))


PROVIDER_STAGES = {
    role: Stage('provider' + sources.TAIL[role], _provider(role),
                lambda: [*PROVIDER_INPUTS, images._root_stamp(), paths.lab('products.py')],
                os.path.join(provider(role), 'etc/libibverbs.d/skua.driver'), 300)
    for role in sources.RDMA_CORES}


def _skuad(log):
    chroot.run('make -C {0} -j$(nproc) OUT={1} all'.format(paths.repo('tools/skuad'), paths.SKUAD),
               stdout=log, stderr=log, check=True, timeout=300)


SKUAD_STAGE = Stage('skuad', _skuad, lambda: [*SKUAD_INPUTS, images._root_stamp()],
                    os.path.join(paths.SKUAD, 'skuad'), 180)


def _traffic(log):
    chroot.run(['make', '-C', paths.repo('tools/traffic'), 'OUT=' + paths.TRAFFIC],
               stdout=log, stderr=log, check=True, timeout=60)


TRAFFIC_STAGE = Stage('traffic', _traffic, lambda: [paths.repo('tools/traffic'), images._root_stamp()],
                      os.path.join(paths.TRAFFIC, 'listen_first.so'), 60)


def _selftests(log):
    kselftest = os.path.join(sources.linux('7.2'), 'tools/testing/selftests')
    shutil.rmtree(paths.SELFTESTS, ignore_errors=True)
    chroot.run('make -C {0} -j$(nproc) install OUT={1} KSELFTEST={2}'.format(
        paths.repo('selftests'), paths.SELFTESTS, kselftest), stdout=log, stderr=log, check=True, timeout=120)


SELFTESTS_STAGE = Stage('selftests', _selftests, lambda: [*map(paths.repo, ('selftests', 'uapi', 'include')), images._root_stamp()],
                        os.path.join(paths.SELFTESTS, 'run_selftests.sh'), 120)


def guest_stages(series):
    """What a guest of this kernel needs, without NICs."""
    return [root.STAGE, images.IMAGE_STAGE, images.KERNEL_STAGES[series], TRAFFIC_STAGE]


def provider_stages(role):
    return [sources.RDMA_CORE_STAGES[role], PROVIDER_STAGES[role]]


def stages(series, rdma_core='stable'):
    """What a guest with NICs needs, in order."""
    return guest_stages(series) + [SKUAD_STAGE, MODULES_STAGES[series], *provider_stages(rdma_core)]
