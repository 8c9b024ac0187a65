"""What the stages of make check depend on, and that the patterns that choose tests choose some."""

import ast
import fnmatch
import glob
import os
import re
import unittest
from unittest import mock

from skualab.checks.selftests import DIRECTORIES, selftests
from skualab.checks.table import CHECKS
from skualab.host import paths
from skualab.products import programs, provider
from skualab.roots import root, stage
from skualab.target.distro import DISTRO
from testing import LAB

OLDER, NEWER = DISTRO.series
_, NEXT = DISTRO.rdma_cores
HOME, TESTS = paths.repo('selftests'), paths.lab('tests')
TRAFFIC = paths.repo('tools/traffic/rdma_traffic.c')     # for guests alone
DRIVER_MUTANTS = {one.name for one in CHECKS if one.name.startswith('driver-mutants')}


def words(one):
    return list(map(str, one.command)) if isinstance(one.command, list) else []


def reads(path):
    """The stages that have a file of selftests as an input."""
    path = os.path.join(HOME, path)
    return {one.name for one in CHECKS if any(stage.tree(given).has(path) for given in one.inputs)}


class Selftests(unittest.TestCase):
    """A guest's stage depends on the tests that it runs, and on whatever is no test."""

    # These run all tests, or read their sources.
    ALL = {*('guest-%s' % name for name in (OLDER, NEWER + '-all', NEXT)), *DRIVER_MUTANTS, 'rules', 'scripts', 'tables',
           'lab', 'inputs'}

    def test_one_test(self):
        self.assertEqual(reads('test_cm.sh') - self.ALL, {'guest-cm', 'guest-debug-cm',
                                                            *('guest-cm-' + one for one in DISTRO.series)})
        self.assertEqual(reads('test_limits.c') - self.ALL, {'guest-limits'})
        # Its script names it: tools/lab/tests/test-cycles.
        self.assertLessEqual({'cycles-reset', 'guest-debug-survival'}, reads('test_survival.sh'))

    def test_all_tests(self):
        for name in os.listdir(HOME):
            if name.startswith('test_'):
                readers = self.ALL - {'lab', 'scripts'} if name.endswith('.c') else self.ALL
                self.assertLessEqual(readers, reads(name), name)

    def test_whatever_is_no_test(self):
        guests = {one.name for one in CHECKS if 'guest' in one.name or one.name.startswith(('loss', 'pyverbs', 'interop'))}
        for name in os.listdir(HOME):
            if not name.startswith('test_') and not name.endswith('.py') and name not in {'skips', *DIRECTORIES}:
                self.assertLessEqual(guests, reads(name), name)

    def test_a_script_of_a_few_tests(self):
        self.assertLessEqual({'guest-debug', 'guest-debug-netdev', 'guest-devlink', 'scripts', 'guest-' + OLDER},
                             reads('frames.py'))
        self.assertFalse({'guest-cm', 'guest-limits', 'ulp-' + OLDER, 'pyverbs-' + OLDER} & reads('frames.py'))
        for words, is_read in ('test_cm.sh', False), ('test_cm.sh frames.py', True), ('test_device.sh', True):
            sources, *_ = selftests(words)
            self.assertEqual(sources.has(os.path.join(HOME, 'frames.py')), is_read, words)

    def test_directories(self):
        """Tests that are no kselftests, of a few stages."""
        all_of = {'pyverbs': {'pyverbs-'}, 'interop': {'interop-'},
                  'ulp': {'interop-', 'middleware', 'mpi', 'nvme', 'preload', 'storage-', 'ulp-'}}
        for name in DIRECTORIES:
            found = {re.match('[a-z]+-?', one)[0] for one in reads(name + '/x') - self.ALL}
            self.assertEqual(found - {'mpi-'}, all_of.pop(name), name)
        self.assertEqual(all_of, {})

    def test_every_test_that_a_command_names(self):
        for one in CHECKS:
            for name in re.findall(r'\btest_\w+(?:\.sh)?', ' '.join(words(one))):
                source = os.path.join(HOME, name if name.endswith('.sh') else name + '.c')
                if 'run_selftests.sh' in ' '.join(words(one)):
                    self.assertIn(one.name, reads(source))

    def test_a_test_that_another_one_names(self):
        sources, *_ = selftests('./run_selftests.sh test_probe_failures.sh')
        self.assertTrue(sources.has(os.path.join(HOME, 'test_leaks.sh')))
        self.assertFalse(sources.has(os.path.join(HOME, 'test_cm.sh')))

    def test_a_file_that_is_gone(self):
        """Nothing names it any more, but a stage that ran it did not pass without it."""
        for name in 'test_gone.c', 'test_gone.sh', 'gone.h':
            found = {one.name for one in CHECKS if one.depends_on(os.path.join(HOME, name))}
            self.assertLessEqual({'guest-' + OLDER, 'guest-debug', 'rules'}, found, name)
            self.assertNotIn('skuad', found, name)

    def test_the_program_as_it_was_compiled(self):
        found = selftests('./run_selftests.sh test_rc')
        for name in 'test_rc', 'hostile':
            self.assertIn(os.path.join(paths.SELFTESTS, name), found)
        self.assertNotIn(os.path.join(paths.SELFTESTS, 'test_ud'), found)


class HostTests(unittest.TestCase):
    """No guest has to run again for a test of skuad or of libskua that runs on the host."""

    def guests(self, path):
        """The stages with guests that depend on a file."""
        guests = [one for one in CHECKS if one.smoke is not None or one.name in DRIVER_MUTANTS]
        self.assertGreater(len(guests), 20)
        for one in guests:
            self.assertTrue(one.depends_on(TRAFFIC), one.name)
        return [one.name for one in guests if one.depends_on(paths.repo(path))]

    def test_host_tests(self):
        for path in ('tools/skuad/harness/test_rc.c', 'tools/skuad/harness/verify.h', 'tools/skuad/link/test_switch.c',
                     'tools/skuad/packet/test_packet_vectors.py', 'tools/skuad/fuzz/fuzz.h', 'tools/skuad/run-test.sh',
                     'tools/provider/test/test_cq.c', 'tools/provider/test/shim/x.h'):
            self.assertEqual(self.guests(path), [])
            inputs = map(stage.tree, programs.SKUAD_INPUTS + provider.INPUTS)
            self.assertFalse([given.path for given in inputs if given.has(paths.repo(path))], path)
        host = {one.name: one for one in CHECKS}
        for name, path in (('skuad', 'tools/skuad/harness/verify.h'), ('fuzz', 'tools/skuad/fuzz/fuzz.h'),
                           ('provider', 'tools/provider/test/test_cq.c'), ('teeth', 'tools/provider/test/test_cq.c'),
                           ('completion', 'tools/skuad/completion.bash')):
            self.assertTrue(host[name].depends_on(paths.repo(path)), name)

    def test_a_single_one(self):
        worlds, = (one for one in CHECKS if one.name == 'worlds')
        for path in 'core/qp.c', 'harness/sim_run.c', 'harness/test_sim.c', 'run-test.sh', 'Makefile':
            self.assertTrue(worlds.depends_on(paths.repo('tools/skuad', path)), path)
        for path in 'harness/test_turns.c', 'fuzz/fuzz.h', 'test-completion':
            self.assertFalse(worlds.depends_on(paths.repo('tools/skuad', path)), path)

    def test_scripts(self):
        scripts, = (one for one in CHECKS if one.name == 'scripts')
        for path in 'tools/lab/lab', 'tools/skuad/run-test.sh', 'selftests/frames.py', 'tools/mutants/mutants':
            self.assertTrue(scripts.depends_on(paths.repo(path)), path)
        for path in 'tools/skuad/core/qp.c', 'include/skua/cmd.h', 'Documentation/user/running.rst':
            self.assertFalse(scripts.depends_on(paths.repo(path)), path)

    def test_the_lab(self):
        """What it knows of sources in C is quick to test, and all the rest need not run for these."""
        quick, whole = (one for one in CHECKS if one.name in ('tables', 'lab'))
        for path in 'tools/skuad/core/qp.c', 'include/skua/cmd.h', 'selftests/test_rc.c':
            self.assertTrue(quick.depends_on(paths.repo(path)), path)
            self.assertFalse(whole.depends_on(paths.repo(path)), path)
        for path in 'tools/mutants/device.table', 'selftests/test_cm.sh', 'Documentation/user/qemu.rst', 'tools/lab/lab':
            self.assertTrue(whole.depends_on(paths.repo(path)), path)

    def test_what_skuad_and_libskua_are_made_of(self):
        everywhere = set(self.guests('drivers/infiniband/hw/skua/qp.c'))
        for path in 'tools/skuad/core/qp.c', 'tools/skuad/Makefile', 'tools/skuad/new/file.c', 'tools/provider/qp.c', \
                'tools/provider/drop-in.sh':
            self.assertEqual(set(self.guests(path)), everywhere, path)


class WithoutRoot(HostTests):
    """On a bare machine, on which these tests run while the root is being made."""

    def setUp(self):
        patch = mock.patch.object(root, 'VERSIONS', os.path.join(paths.BUILD, 'none'))
        patch.start()
        self.addCleanup(patch.stop)


def imported(path):
    """The files of the lab that one of them imports, or loads as a script."""
    with open(path) as file:
        text = file.read()
    yield from (os.path.join(LAB, name) for name in re.findall(r"\bscript\('([^']+)'\)", text))
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module, *('%s.%s' % (node.module, alias.name) for alias in node.names)]
    for place in LAB, TESTS:
        yield from filter(os.path.isfile, (os.path.join(place, name.replace('.', '/') + '.py') for name in names))


class Imports(unittest.TestCase):
    """A script of tools/lab/tests or tools/mutants is an input of its stage, and so is what of the lab it imports."""

    def reads(self, scripts):
        """These and all that they import."""
        found, new = set(), set(scripts)
        while new:
            found |= new
            new = {path for one in new for path in imported(one)} - found
        return found

    def test_imports_are_inputs(self):
        seen = 0
        for one in CHECKS:
            scripts = [word for word in words(one) if word.startswith((TESTS + '/test-', paths.repo('tools/mutants')))]
            if TESTS + '/test-guest' in scripts:    # it looks for tests by itself
                scripts += glob.glob(TESTS + '/guest/*.py')
            for path in self.reads(scripts):
                self.assertTrue(one.depends_on(path), '%s: %s' % (one.name, path))
            seen += bool(scripts)
        self.assertGreater(seen, 20)

    def test_what_a_script_imports(self):
        found = {os.path.relpath(path, LAB) for path in self.reads([TESTS + '/test-ubuntu'])}
        self.assertLessEqual({'tests/testing.py', 'tests/test-bare', 'skualab/checks/table.py',
                              'skualab/checks/check.py', 'skualab/host/say.py'}, found)


class Patterns(unittest.TestCase):
    """A test that was renamed, but not in the command of its stage, would not run any more."""

    def test_of_host_tests(self):
        chosen = 0
        for one in CHECKS:
            given = dict(word.split('=', 1) for word in words(one) if re.match('(T|SKUA_TESTS)=', word))
            if 'T' in given:
                with open(paths.repo('tools/skuad', given['T'] + '.c')) as file:
                    names = re.findall(r'^static void (\w+)\(void \*\*state\)$', file.read(), re.M)
                if 'SKUA_TESTS' in given:
                    self.assertTrue(fnmatch.filter(names, given['SKUA_TESTS']), '%s: %s' % (one.name, given))
                    chosen += 1
        self.assertGreater(chosen, 0)

    def test_of_selftests(self):
        for one in CHECKS:
            for word in words(one):
                if re.fullmatch(r'test_\w+(\.sh)?', word):
                    source = os.path.join(HOME, word)
                    self.assertTrue(os.path.exists(source) or os.path.exists(source + '.c'), '%s: %s' % (one.name, word))
