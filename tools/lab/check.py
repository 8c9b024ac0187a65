"""make check: stages of tests, one after the other, each a command with a budget.

A stage's command ends its output with "N passed, N failed, N skipped", or counts as one test. A
stage that passed and whose inputs are the same is not run again: its numbers stand. One that
failed is run again the next time, but never twice in one check. What a stage left is in
build/check/STAGE/: `log`, and for guests the artefacts of `lab run`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import images
import mirror
import paths
import products
import root
import say
import sources
from lock import held
from process import popen
from stage import digest, tail

OUT = os.path.join(paths.BUILD, 'check')
SUM = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.M)
# A test that failed: TAP says why below this line, cmocka above. And what run_selftests.sh says of a script.
NOT_OK, FAILED = re.compile(r'not ok |# \S+ ended with status '), re.compile(r'\[  FAILED  \]')
LAB = paths.lab('lab')

KERNEL = [paths.repo(name) for name in ('Kbuild', 'drivers', 'include', 'selftests/kernel', 'uapi')]
SKUAD = [paths.repo(name) for name in ('tools/skuad', 'include/skua')]
PROVIDER = [paths.repo(name) for name in ('tools/provider', 'include/skua', 'uapi')]
SYSTEM = KERNEL + SKUAD + PROVIDER + [paths.repo(name) for name in ('tools/lab', 'tools/traffic', 'selftests')]


class Check:
    """A stage: its name, its budget in seconds, what it depends on, and its command, a list or a
    function that returns one (after what it needs is built). `full` ones are not in make check,
    `debug` ones are make check-debug."""

    def __init__(self, name, budget, inputs, command, needs=(), full=False, debug=False):
        self.name, self.budget, self.inputs = name, budget, inputs
        self.command, self.needs, self.full, self.debug = command, needs, full, debug
        self.directory = os.path.join(OUT, name)

    def hash(self):
        versions = root.told() if os.path.exists(root.VERSIONS) else ''
        command = self.command() if callable(self.command) else self.command
        return digest(versions, *command, *self.inputs)

    def kept(self, hashed):
        """The counts of an earlier pass with the same inputs, or None."""
        try:
            with open(os.path.join(self.directory, 'passed')) as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return None
        return kept['counts'] if kept['hash'] == hashed else None

    def _begin(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)

    def run(self):
        """Returns ([passed, failed, skipped], kept)."""
        try:
            for stage in self.needs:
                stage.run()
        except say.LabError as error:
            # The other stages may still tell something.
            self._begin()
            with open(os.path.join(self.directory, 'log'), 'w') as file:
                file.write('%s\n' % mirror.hide(str(error)))
            return [0, 1, 0], False
        with held(self.directory + '.lock', 'runs the stage %s' % self.name):
            return self._run_alone()

    def _run_alone(self):
        hashed = self.hash()
        counts = self.kept(hashed)
        if counts:
            return counts, True
        self._begin()
        log = os.path.join(self.directory, 'log')
        status = _run(self.command() if callable(self.command) else self.command, log, self.budget, self.name)
        with open(log, errors='replace') as file:
            found = SUM.findall(file.read())
        counts = [int(word) for word in found[-1]] if found else [int(status == 0), int(status != 0), 0]
        if not counts[1] and (status or not counts[0]):
            counts[1] = 1       # it died on the way, or tested nothing
        # Whoever edits while it runs has not tested what is there now.
        if not counts[1] and self.hash() == hashed:
            with open(os.path.join(self.directory, 'passed'), 'w') as file:
                json.dump({'hash': hashed, 'counts': counts}, file)
        return counts, False


def _run(command, log, budget, name):
    """The status of a command, whose whole family ends with its budget."""
    with open(log, 'w') as file, say.Progress(name, log, budget):
        process, life = popen(command, flags=['group'], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                              cwd=paths.REPO, start_new_session=True)
        try:
            return process.wait(budget)
        except subprocess.TimeoutExpired:
            file.write('took more than its budget of %d s\n' % budget)
            return 124
        finally:
            if process.returncode is None:      # over its budget, or check itself is ended
                _end(process)
            os.close(life)


def _end(process):
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def in_root(*words):
    return [LAB, 'exec', '--', *words]


def in_guest(name, seconds, *words, options=()):
    # A relative path is only a word of the hash: what the last run left there is no input.
    left = os.path.relpath(os.path.join(OUT, name, 'guest'), paths.REPO)
    return [LAB, 'run', '--artifacts', left, '--timeout', str(seconds),
            '--share', paths.SELFTESTS, *options, '--', *words]


def _modules(series):
    """Everything of the kernel that compilers and sparse can say: none is fine."""
    def command():
        return in_root(paths.repo('tools/lab/check-modules'), products.headers(series),
                       os.path.join(paths.MODULES, series + '.check'))
    return command


def _guest(name, series, seconds, *words, rdma_core='stable', more=(), full=False):
    options = ('--kernel', series, '--rdma-core', rdma_core, *more)
    return Check(name, seconds + 60, SYSTEM, in_guest(name, seconds, *words, options=options),
                 [*products.stages(series, rdma_core), sources.LINUX_STAGES['7.2'], products.SELFTESTS_STAGE], full)


LOSS_PAIRS = 5

# How the two NICs of pair N are joined.
JOINED = {
    'wire': ('link=wire:%d', 'link=wire:%d'),
    'dgram': ('link=dgram:/tmp/left%d:/tmp/right%d', 'link=dgram:/tmp/right%d:/tmp/left%d'),
    'stream': ('link=stream:listen:/tmp/wire%d', 'link=stream:/tmp/wire%d'),
}


def _loss(name, series, seconds, link='wire', full=True):
    """Verified traffic for so many seconds under each of ten impairments, by pairs of NICs that work at the same
    time. A case that hangs ends by itself, so that the others are still run."""
    limit = 20 * seconds // LOSS_PAIRS + 360
    devices = [word for pair in range(LOSS_PAIRS) for text in JOINED[link]
               for word in ('--device', text.replace('%d', str(pair)))]
    return _guest(name, series, limit + 60, './run_selftests.sh', 'test_loss.sh', full=full, more=(
        *devices, '--mem', '3G', '--env', 'SKUA_LOSS_SECONDS=%d' % seconds, '--env', 'SKUA_TEST_TIMEOUT=%d' % limit))


def _debug(name, *tests):
    """Tests under the debug kernel, in which all takes many times as long. A test that is ended
    leaves the NICs as they are to the next; so only the stage as a whole has a budget. Last is whether
    anything was lost."""
    options = ('--kernel', 'debug', '--mem', '3G', '--env', 'SKUA_TEST_TIMEOUT=1800', '--env', 'SKUA_SLOWNESS=10',
               '--env', 'SKUA_CYCLES=3')
    return Check(name, 1860, SYSTEM, in_guest(name, 1800, './run_selftests.sh', *tests, 'test_leaks.sh',
                                              options=options),
                 [*products.stages('debug'), sources.LINUX_STAGES['7.2'], products.SELFTESTS_STAGE], full=True,
                 debug=True)


def _cycles(kind, number):
    """What is lost each time shows after very many."""
    left = os.path.relpath(os.path.join(OUT, 'cycles-' + kind, 'guest'), paths.REPO)
    return Check('cycles-' + kind, 3660, SYSTEM, [paths.lab('test-cycles'), kind, str(number), '3600', left],
                 [*products.stages('6.12'), sources.LINUX_STAGES['7.2'], products.SELFTESTS_STAGE], full=True)


def _skuad(name, budget, *words, full=False):
    """Host tests of skuad."""
    return Check(name, budget, SKUAD,
                 in_root('make', '-s', '-j2', '--no-print-directory', '-C', 'tools/skuad',
                         'OUT=' + os.path.join(paths.BUILD, 'skuad-check'), *words), ROOT, full)


def _long(name, budget, target, test, *settings):
    """One test of skuad's, with as much as make check has no time for."""
    return _skuad(name, budget, *settings, 'SKUA_TEST_TIMEOUT=%d' % budget, 'T=' + test, target, full=True)


def _worlds(name, budget, number, seed, full=False):
    """So many random worlds of the simulator; full: other ones each day."""
    return _skuad(name, budget, 'SKUA_WORLDS=%d' % number, 'SKUA_SEED=%d' % seed, 'SKUA_TEST_TIMEOUT=%d' % budget,
                  'SKUA_ARTIFACTS=' + os.path.join(OUT, name), 'T=harness/test_sim', 'check-plain', full=full)


def _provider(name, target, needs, rdma_core=None, full=False):
    """Host tests of libskua: alone, or with the headers of an rdma-core that it was built in."""
    words = ['BUILD=' + products.provider_tree(rdma_core) + '/build'] if rdma_core else []
    return Check(name, 300, PROVIDER,
                 in_root('make', '-s', '--no-print-directory', '-C', 'tools/provider/test', target,
                         'OUT=' + os.path.join(paths.BUILD, 'provider-test', name), *words), [*ROOT, *needs], full)


def _fuzz(name, budget, full=False, **options):
    left = {'CORPUS': os.path.join(OUT, name, 'corpus'), 'FOUND_IN': os.path.join(OUT, name, 'found'), 'JOBS': 2,
            **options}
    return _skuad(name, budget, *('%s=%s' % one for one in left.items()), 'fuzz', full=full)


# Of verified traffic under each impairment: in make check, and on each link with each kernel in make check-full. And
# the messages of UC and UD of each kind and size to and from rdma_rxe.
LOSS_SECONDS, LOSS_SECONDS_FULL, LOSSY_MESSAGES = 60, 600, 400
ROOT = [root.STAGE]
PROGRAMS = os.path.join(paths.SKUAD, 'skuad'), os.path.join(paths.SKUAD, 'skuactl')
CHECKS = [
    Check('manual', 60, [paths.repo('Documentation'), *SKUAD], in_root('python3', 'Documentation/check-manual'), ROOT),
    Check('manual-checker', 300, [paths.repo('Documentation/check-manual')],
          in_root('python3', 'Documentation/check-manual', '--self-test'), ROOT),
    Check('man', 60, [paths.repo('Documentation'), *SKUAD, paths.repo('tools/lab')],
          in_root('python3', 'Documentation/check-man', os.path.join(paths.BUILD, 'man'), *PROGRAMS, LAB),
          [*ROOT, products.SKUAD_STAGE]),
    Check('completion', 60, SKUAD, in_root('tools/skuad/test-completion', *PROGRAMS), [*ROOT, products.SKUAD_STAGE]),
    Check('rules', 60, [paths.repo(name) for name in ('Documentation/manual', 'selftests', 'tools/provider/test',
                                                     'tools/skuad')],
          in_root('python3', 'tools/skuad/harness/untested-rules'), ROOT),
    Check('lab', 300, [*SKUAD, *[paths.repo(name) for name in ('tools/lab', 'tools/bench', 'tools/mutants',
                                                               'selftests/pyverbs', 'README.md')]],
          ['python3', paths.lab('test-lab')]),
    _skuad('skuad', 900, 'check'),
    _skuad('skuad-asan', 1200, 'SKUA_TEST_TIMEOUT=600', 'check-asan', full=True),
    _skuad('skuad-tsan', 900, 'check-tsan'),
    _worlds('worlds', 240, 10000, 1),
    # From the seeds on, whatever was learnt before, and with the same chance each time: what fails here fails
    # for everybody. What other inputs do is make fuzz's, and fuzz-long's.
    _fuzz('fuzz', 480, SECONDS=60, CHANCE=1),
    _fuzz('fuzz-long', 1500, full=True, SECONDS=600, CHANCE=0),
    _provider('provider', 'check', ROOT),
    _provider('provider-verbs', 'check-verbs', products.provider_stages('stable'), 'stable'),
    _provider('provider-testing', 'check-verbs', products.provider_stages('testing'), 'testing', full=True),
    Check('scripts', 300, [paths.repo(name) for name in ('.ci', 'Documentation', 'drivers', 'selftests', 'tools')],
          in_root(paths.lab('check-scripts'), sources.CHECKERS), [*ROOT, sources.CHECKERS_STAGE]),
    Check('kernel-doc', 60, [*KERNEL, paths.lab('check-kernel-doc')],
          in_root('sh', '-c', 'exec %s /usr/lib/linux-kbuild-6.12*' % paths.lab('check-kernel-doc')), ROOT),
    Check('checkpatch', 300, [*KERNEL, paths.lab('check-style')],
          in_root(paths.lab('check-style'), sources.linux('7.2')), [*ROOT, sources.LINUX_STAGES['7.2']]),
    *[Check('modules-' + series, 300, KERNEL, _modules(series), [*ROOT, images.KERNEL_STAGES[series]])
      for series in root.SERIES],
    # What make run shows: the door has to be open.
    Check('demo', 600, SYSTEM, [LAB, 'demo'], products.stages('6.12')),
    # What a user does without the lab: skuad on this host, whatever its C library is, and the README's lines.
    Check('by-hand', 360, [*SYSTEM, paths.repo('README.md'), paths.repo('Documentation/user/qemu.rst')],
          ['python3', paths.lab('test-by-hand')], products.stages('6.12')),
    Check('lab-guest', 900, SYSTEM, ['python3', paths.lab('test-guest')], products.stages('6.12')),
    _guest('guest-6.12', '6.12', 1200, './run_selftests.sh'),
    _guest('guest-limits', '6.12', 800, './run_selftests.sh', 'test_limits', 'test_pagelists',
           more=('--mem', '5G', '--env', 'SKUA_TEST_TIMEOUT=600')),
    _guest('guest-inject', '6.12', 800, './run_selftests.sh', 'test_inject.sh', 'test_death.sh', 'test_release'),
    # The share does not survive a sleep.
    _guest('guest-power', '6.12', 300, 'sh', '-c',
           'cp -r . /tmp/selftests && cd /tmp/selftests && exec ./run_selftests.sh test_power.sh'),
    # That the traffic goes on; at which rate is a figure of a quiet machine.
    _guest('guest-hostile', '6.12', 400, './run_selftests.sh', 'test_hostile.sh',
           more=('--env', 'SKUA_HOSTILE_SHARE=0')),
    _loss('loss', '6.12', LOSS_SECONDS, full=False),
    _guest('guest-cm', '6.12', 500, './run_selftests.sh', 'test_cm.sh', more=('--env', 'SKUA_TEST_TIMEOUT=450')),
    _guest('pyverbs-6.12', '6.12', 600, './pyverbs/run'),
    _guest('guest-7.2', '7.2', 600, './run_selftests.sh', 'test_rc', 'test_ud', 'test_uc', 'test_mcast',
           'test_device.sh'),
    _debug('guest-debug', 'test_verbs', 'test_rc', 'test_device.sh'),
    _debug('guest-debug-netdev', 'test_netdev.sh', 'test_counters.sh'),
    # By itself, since lockdep tells of one thing only (kernellog.NO_DEADLOCK), and is silent then.
    _debug('guest-debug-removal', 'test_removal'),
    _debug('guest-debug-kernel', 'test_kernel.sh'),
    _debug('guest-debug-verbs', 'test_bad_objects', 'test_bad_memory', 'test_bad_qps', 'test_bad_posting',
           'test_bad_work', 'test_bad_commands', 'test_threads', 'test_fork', 'test_teardown'),
    _debug('guest-debug-datagrams', 'test_ud', 'test_uc', 'test_mcast'),
    _debug('guest-debug-cm', 'test_cm.sh'),
    _debug('guest-debug-death', 'test_death.sh'),
    _debug('guest-debug-survival', 'test_survival.sh'),
    _debug('guest-debug-failures', 'test_failures', 'test_probe_failures.sh'),
    _guest('guest-hostile-share', '6.12', 400, './run_selftests.sh', 'test_hostile.sh', full=True),
    _worlds('worlds-million', 5400, 1000000, int(time.strftime('%Y%m%d')) * 1000000, full=True),
    Check('mutants', 3600, [*SKUAD, paths.repo('tools/mutants')],
          in_root('tools/mutants/mutants', '--out', os.path.join(paths.BUILD, 'mutants')), ROOT, full=True),
    Check('driver-mutants', 3600, [*SYSTEM, paths.repo('tools/mutants')],
          [paths.repo('tools/mutants/driver-mutants'), '--out', os.path.join(paths.BUILD, 'driver-mutants')],
          [*products.stages('6.12'), sources.LINUX_STAGES['7.2'], products.SELFTESTS_STAGE], full=True),
    _long('neighbour', 1800, 'check-plain', 'harness/test_neighbour', 'SKUA_STORMS=100'),
    _long('goodput-seeds', 1800, 'check-plain', 'harness/test_goodput', 'SKUA_SEEDS=10', 'SKUA_GOODPUT_MIB=128'),
    _long('forged', 600, 'check', 'harness/test_forged', 'SKUA_FORGED=10000000'),
    *[_long('recovery-' + mode, 900, 'check-plain', 'harness/test_recovery', 'SKUA_VERIFY_MIB=10240',
            'SKUA_TESTS=*nothing_is_corrupted' + test) for mode, test in (
                ('repeat', ''), ('go-back-n', '_by_go_back_n'), ('threads', '_between_threads'))],
    _cycles('reset', 1000),
    _cycles('unbind', 1000),
    _cycles('reload', 1000),
    Check('interop-rxe', 1500, SYSTEM, ['python3', paths.lab('test-interop')],
          [*products.stages('6.12'), products.SELFTESTS_STAGE], full=True),
    Check('interop-lossy', 2700, SYSTEM, ['python3', paths.lab('test-interop'), '--lossy', str(LOSSY_MESSAGES)],
          [*products.stages('6.12'), products.SELFTESTS_STAGE], full=True),
    *[_loss('loss-' + link + tail, series, LOSS_SECONDS_FULL, link)
      for link in JOINED for series, tail in (('6.12', ''), ('7.2', '-7.2'))],
    Check('pair', 400, SYSTEM, ['python3', paths.lab('test-pair')], products.stages('6.12'), full=True),
    Check('links', 660, [*SYSTEM, paths.repo('Documentation/user/skuad.rst')], ['python3', paths.lab('test-links')],
          products.stages('6.12'), full=True),
    Check('goodput', 660, SYSTEM, ['python3', paths.lab('test-goodput')], products.stages('6.12'), full=True),
    _guest('traffic', '6.12', 3600, 'left', 'rdma_traffic', '-q', '64', '-b', '10G', 'skua_0', 'skua_1', full=True),
    _guest('guest-7.2-all', '7.2', 900, './run_selftests.sh', full=True),
    _guest('guest-cm-7.2', '7.2', 500, './run_selftests.sh', 'test_cm.sh', rdma_core='testing',
           more=('--env', 'SKUA_TEST_TIMEOUT=450'), full=True),
    _guest('guest-testing', '7.2', 900, './run_selftests.sh', rdma_core='testing', full=True),
    _guest('pyverbs-7.2', '7.2', 900, './pyverbs/run', full=True),
]


def failures(log, each=8, most=40):
    """The lines of a log that tell of failed tests: @each of them with so many lines that say why."""
    with open(log, errors='replace') as file:
        texts = file.readlines()
    shown = set()
    for i, text in enumerate(texts):
        if NOT_OK.match(text):
            shown.update(range(i, min(i + 1 + each, len(texts))))
        elif FAILED.match(text):
            shown.update(range(max(i - each, 0), i + 1))
    return [texts[i] for i in sorted(shown)[:most]]


def check(names, full=False, debug=False):
    """Run stages by name, or all; debug: those under the debug kernel. Returns an exit status."""
    if debug:
        names = [*names, *(one.name for one in CHECKS if one.debug)]
    unknown = set(names) - {one.name for one in CHECKS}
    if unknown:
        raise say.LabError('no stage %s: there are %s' % (
            ', '.join(sorted(unknown)), ', '.join(one.name for one in CHECKS)))
    total, failed, start = [0, 0, 0], [], time.monotonic()
    for one in CHECKS:
        if one.name not in names if names else one.full and not full:
            continue
        began = time.monotonic()
        counts, kept = one.run()
        total = [a + b for a, b in zip(total, counts)]
        print('%-16s %d passed, %d failed, %d skipped, %s' % (
            (one.name, *counts, 'as before' if kept else '%.0f s of %d' % (time.monotonic() - began, one.budget))),
            flush=True)
        if counts[1]:
            failed.append(os.path.relpath(one.directory, paths.REPO))
    # Last, since the end is often all that somebody else's machine shows of what it printed.
    for place in failed:
        log = os.path.join(paths.REPO, place, 'log')
        print('failed: %s, artefacts in %s, the end of its log:\n%s' % (os.path.basename(place), place, tail(log, 8)))
        print(''.join('    ' + text for text in failures(log)), end='')
    print('%s in all' % say.seconds(time.monotonic() - start))
    print('%d passed, %d failed, %d skipped' % tuple(total))
    return 1 if total[1] or not total[0] else 0
