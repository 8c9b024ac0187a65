"""libskua, the provider, in each rdma-core that it is for.

Assumed: tools/provider/drop-in.sh TREE makes TREE, of rdma-core, have providers/skua.
"""

import glob
import os
import shutil

from skualab.host import paths
from skualab.products import images, sources
from skualab.roots import chroot
from skualab.roots.stage import content, Stage, Tree
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO

INPUTS = [Tree(paths.repo('tools/provider'), 'test'), *map(paths.repo, ('include/skua', 'uapi'))]

LIBDIR = 'usr/lib/' + ARCH.triplet
CMAKE = ('-GNinja -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=/%s '
         '-DNO_MAN_PAGES=1' % LIBDIR)
# Of the rdma-core of the root, the guest has pyverbs already.
OPTIONS = {role: CMAKE + ' -DNO_PYVERBS=1' * (role == DISTRO.rdma_core) for role in DISTRO.rdma_cores}


def tree_of(role):
    """rdma-core with the provider dropped in."""
    return os.path.join(paths.BUILD, 'rdma-core' + sources.TAIL[role])


def directory(role):
    """What of rdma-core a guest gets, a tree: of stable libskua alone, since the root has the rest."""
    return paths.PROVIDER + sources.TAIL[role]


def _fresh_tree(role):
    # A copy, made anew when the source is, when it was moved, which cmake does not take, or when its options change:
    # what was compiled in it is worth keeping.
    source, tree = sources.rdma_core(role), tree_of(role)
    made_of = '%d in %s with %s' % (os.stat(source).st_mtime_ns, tree, OPTIONS[role])
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
OTHERS = ['mlx5', 'efa', 'hns']
# pyverbs goes with one libibverbs only, too; its tests ask what is new in it.
PYVERBS, PYVERBS_TESTS = 'usr/lib/python3/dist-packages/pyverbs', 'usr/share/doc/rdma-core/tests'
LIBRARIES = ['libibverbs.so.1', 'librdmacm.so.1', *('lib%s.so.1' % name for name in OTHERS)]
PRELOADED = 'rspreload'         # makes rsockets of the sockets of a program
BUDGETS = {False: 300, True: 1200}      # seconds, by whether all of that is made
PROGRAMS = ['ibv_devices', 'ibv_devinfo', 'ibv_rc_pingpong', 'rping']
# What ninja makes besides libskua.
REST = [*OTHERS, *PROGRAMS, PRELOADED, 'pyverbs/all']


def _provider(role):
    def make(log):
        _fresh_tree(role)
        tree, out, whole = tree_of(role), directory(role), role != DISTRO.rdma_core
        chroot.run('''{drop} {tree}
            mkdir -p {tree}/build && cd {tree}/build
            [ -e build.ninja ] || cmake {options} ..
            pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\\(.*\\)")/\\1/p' ../CMakeLists.txt)
            ninja skua-rdmav$pabi {rest}'''.format(drop=paths.repo('tools/provider/drop-in.sh'), tree=tree,
                                                   options=OPTIONS[role],
                                                   rest=' '.join(REST if whole else [])),
                   stdout=log, stderr=log, check=True, timeout=BUDGETS[whole])
        shutil.rmtree(out, ignore_errors=True)
        library, = glob.glob(tree + '/build/lib/libskua-rdmav*.so')
        _copy(library, out, LIBDIR + '/libibverbs')
        if whole:
            for name in LIBRARIES:
                _copy(tree + '/build/lib/' + name, out, LIBDIR)
            _copy('%s/build/lib/lib%s.so' % (tree, PRELOADED), out, LIBDIR + '/rsocket')
            for name in PROGRAMS:
                _copy(tree + '/build/bin/' + name, out, 'usr/bin')
            shutil.copytree(tree + '/build/python/pyverbs', os.path.join(out, PYVERBS))
            shutil.copytree(tree + '/tests', os.path.join(out, PYVERBS_TESTS))
            # What they say to a debugger is most of them, and a guest holds them in its memory.
            chroot.run('find %s -name "*.so" -exec strip --strip-debug {} +' % chroot.quote(os.path.join(out, PYVERBS)),
                       stdout=log, stderr=log, check=True, timeout=60)
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


STAGES = {
    role: Stage('provider' + sources.TAIL[role], _provider(role),
                lambda: [*INPUTS, images.root_stamp(), content(os.path.realpath(__file__))],
                os.path.join(directory(role), 'etc/libibverbs.d/skua.driver'), BUDGETS[role != DISTRO.rdma_core])
    for role in DISTRO.rdma_cores}


def stages(role):
    """What makes it, with the source that it is built in."""
    return [sources.RDMA_CORE_STAGES[role], STAGES[role]]
