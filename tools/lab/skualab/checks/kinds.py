"""The kinds of stages that make check has."""

import os

from skualab.checks.check import Check, OUT
from skualab.checks.selftests import selftests, text
from skualab.host import paths
from skualab.products import kernels, modules, programs, provider, stages
from skualab.roots import root
from skualab.roots.stage import Tree
from skualab.target.distro import DISTRO

KERNEL = [paths.repo(name) for name in ('Kbuild', 'drivers', 'include', 'selftests/kernel', 'uapi')]
# These two with their own tests, which no guest reads.
SKUAD = [paths.repo(name) for name in ('tools/skuad', 'include/skua')]
# What a single test of skuad's is made of, besides itself.
SKUAD_OF_ONE_TEST = [Tree(paths.repo('tools/skuad'), 'fuzz', 'test[_-]*', 'check-*', 'completion.bash'), SKUAD[1]]
PROVIDER = [paths.repo(name) for name in ('tools/provider', 'include/skua', 'uapi')]
MANUAL = [paths.repo(name) for name in ('Documentation', 'include/skua', 'uapi')]
ALL = [paths.repo(name) for name in ('.ci', 'Documentation', 'Kbuild', 'Makefile', 'README.md', 'drivers', 'include',
                                     'selftests', 'tools', 'uapi')]
ALL_BUT_C = [Tree(path, '*.[ch]') for path in ALL]
# All but what in-root/check-scripts never looks at.
SCRIPTS = [Tree(path, '*.[ch]', '*.rst') for path in ALL]
# What of the lab is in a guest's way; its own tests are inputs of the stages that run them.
LAB_OF_GUESTS = [paths.lab(name) for name in ('lab', 'in-guest', 'in-root/make-kernel.sh', 'skualab/__init__.py', *(
    'skualab/' + room for room in ('target', 'host', 'roots', 'products', 'machines', 'runs', 'command')))]
# What every guest with NICs reads. selftests() adds the tests that it runs.
SYSTEM = KERNEL + programs.SKUAD_INPUTS + provider.INPUTS + LAB_OF_GUESTS + [paths.repo('tools/traffic')]
ROOT = [root.STAGE]
SELFTESTS = stages.SELFTESTS
LAB = paths.lab('lab')


def in_root(*words):
    return [LAB, 'exec', '--', *words]


def made(*names):
    """A path below build/ that is no input: it is relative, and so only a word of the hash."""
    return os.path.relpath(os.path.join(*names), paths.REPO)


def in_guest(name, seconds, *words, options=()):
    # Of the share, selftests() has what is an input.
    return [LAB, 'run', '--artifacts', made(OUT, name, 'guest'), '--timeout', str(seconds),
            '--share', made(paths.SELFTESTS), *options, '--', *words]


def _guest_inputs(words):
    return [*SYSTEM, *selftests(' '.join(words))]


def modules_command(series):
    """All that sparse can say; what the compiler can say fails the build."""
    def command():
        return in_root(paths.lab('in-root/check-modules'), modules.headers(series),
                       made(modules.build_directory(series)), modules.WARNINGS)
    return command


def guest_tests(name, seconds, *words, series=DISTRO.kernel, rdma_core=DISTRO.rdma_core, more=(), full=False,
                alone=False, smoke=False):
    options = ('--kernel', series, '--rdma-core', rdma_core, *more)
    return Check(name, seconds + 60, _guest_inputs(words), in_guest(name, seconds, *words, options=options),
                 [*stages.guest(series, rdma_core), *SELFTESTS], full, alone=alone, smoke=smoke)


LOSS_PAIRS = 5

# How the two NICs of pair N are joined.
JOINED = {
    'wire': ('link=wire:%d', 'link=wire:%d'),
    'dgram': ('link=dgram:/tmp/left%d:/tmp/right%d', 'link=dgram:/tmp/right%d:/tmp/left%d'),
    'stream': ('link=stream:listen:/tmp/wire%d', 'link=stream:/tmp/wire%d'),
}


def loss_tests(name, seconds, series=DISTRO.kernel, link='wire', full=True):
    """Verified traffic for so many seconds under each of ten impairments, by pairs of NICs that work at the same
    time. A case that hangs ends by itself, so that the others are still run."""
    limit = 20 * seconds // LOSS_PAIRS + 360
    devices = [word for pair in range(LOSS_PAIRS) for text in JOINED[link]
               for word in ('--device', text.replace('%d', str(pair)))]
    return guest_tests(name, limit + 60, './run_selftests.sh', 'test_loss.sh', series=series, full=full, more=(
        *devices, '--mem', '3G', '--env', 'SKUA_LOSS_SECONDS=%d' % seconds, '--env', 'SKUA_TEST_TIMEOUT=%d' % limit))


def debug_tests(name, *tests, last=('test_leaks.sh',), memory='3G'):
    """Tests under the debug kernel, in which all takes many times as long. A test that is ended
    leaves the NICs as they are to the next; so only the stage as a whole has a budget. Last is whether
    anything was lost."""
    options = ('--kernel', 'debug', '--mem', memory, '--env', 'SKUA_TEST_TIMEOUT=3300', '--env', 'SKUA_SLOWNESS=10',
               '--env', 'SKUA_CYCLES=3')
    words = './run_selftests.sh', *tests, *last
    inputs = [*_guest_inputs(words), *kernels.debug_inputs('debug')]
    return Check(name, 3660, inputs, in_guest(name, 3600, *words, options=options),
                 [*stages.guest('debug'), *SELFTESTS], full=True, debug=True, smoke=False)


def lab_tests(name, budget, script, *words, inputs=(), needs=(), kernel=DISTRO.kernel, full=False, alone=False,
              smoke=False):
    """A script of tools/lab/tests, which boots guests itself, of a debug kernel in make check-debug."""
    debug = kernel in kernels.DEBUG
    command = ['python3', paths.lab('tests', script), *words]
    inputs = [paths.lab('tests/testing.py'), paths.lab('tests/across.py'), *inputs]
    if debug:
        inputs += kernels.debug_inputs(kernel)
    return Check(name, budget, [*SYSTEM, *inputs, *selftests(text(*command, *inputs))], command,
                 [*stages.guest(kernel), *needs], full, debug, alone=alone, smoke=smoke)


def storage(name, budget, kernel, *words, full=True):
    """Storage protocols between two guests with this kernel."""
    return lab_tests(name, budget, 'test-storage', '--kernel', kernel, *words, needs=SELFTESTS, kernel=kernel, full=full)


def ulp_tests(kernel):
    """What uses RDMA in a kernel, between two guests."""
    return lab_tests('ulp-' + kernel, 3600 if kernel in kernels.DEBUG else 900, 'test-ulp', '--kernel', kernel,
                     needs=SELFTESTS, kernel=kernel, full=True)


def middleware(name, budget, *words, needs=(), kernel=DISTRO.kernel, full=True):
    """Software of user space between guests."""
    return lab_tests(name, budget, 'test-middleware', *words, inputs=[paths.lab('tests/ceph.py')],
                     needs=[*SELFTESTS, *needs], kernel=kernel, full=full)


def cycles(kind, number):
    """What is lost each time shows after very many."""
    name = 'cycles-' + kind
    left = made(OUT, name, 'guest')
    return lab_tests(name, 3660, 'test-cycles', kind, str(number), '3600', left, needs=SELFTESTS, full=True)


def skuad_tests(name, budget, *words, inputs=SKUAD, full=False):
    """Host tests of skuad. The last word is the target: those of TSan and libFuzzer have objects of their own."""
    return Check(name, budget, inputs,
                 in_root('make', '-s', '-j2', '--no-print-directory', '-C', 'tools/skuad',
                         'OUT=' + os.path.join(paths.BUILD, 'skuad-check'), *words), ROOT, full,
                 writes=words[-1] if words[-1] in ('check-tsan', 'fuzz') else 'skuad-check')


def long_test(name, budget, target, test, *settings, full=True):
    """One test of skuad's; full: with as much as make check has no time for."""
    return skuad_tests(name, budget, *settings, 'SKUA_TEST_TIMEOUT=%d' % budget, 'T=' + test, target,
                       inputs=[*SKUAD_OF_ONE_TEST, paths.repo('tools/skuad', test + '.c')], full=full)


def worlds(name, budget, number, seed, full=False):
    """So many random worlds of the simulator; full: other ones each day."""
    return long_test(name, budget, 'check-plain', 'harness/test_sim', 'SKUA_WORLDS=%d' % number, 'SKUA_SEED=%d' % seed,
                     'SKUA_ARTIFACTS=' + os.path.join(OUT, name), full=full)


def provider_tests(name, target, needs, rdma_core=None, full=False):
    """Host tests of libskua: alone, or with the headers of an rdma-core that it was built in."""
    words = ['BUILD=' + provider.tree_of(rdma_core) + '/build'] if rdma_core else []
    return Check(name, 300, PROVIDER,
                 in_root('make', '-s', '--no-print-directory', '-C', 'tools/provider/test', target,
                         'OUT=' + os.path.join(paths.BUILD, 'provider-test', name), *words), [*ROOT, *needs], full)


def fuzzers(name, budget, full=False, **options):
    left = {'CORPUS': os.path.join(OUT, name, 'corpus'), 'FOUND_IN': os.path.join(OUT, name, 'found'), 'JOBS': 2,
            **options}
    return skuad_tests(name, budget, *('%s=%s' % one for one in left.items()), 'fuzz', full=full)
