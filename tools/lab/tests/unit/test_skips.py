"""Which skips a log reports, and which of them are allowed (selftests/skips)."""

import ast
import glob
import importlib
import os
import re
import tempfile
import unittest

from skualab.checks import skips
from testing import LAB


def may_skip(text):
    """Of a module's source: (class, test, reason) of each test that a decorator may skip."""
    for one in ast.parse(text).body:
        for test in one.body if isinstance(one, ast.ClassDef) else ():
            for decorator in getattr(test, 'decorator_list', ()):
                if isinstance(decorator, ast.Call) and getattr(decorator.func, 'attr', '') in ('skipIf', 'skipUnless'):
                    yield one.name, test.name, decorator.args[1].value


class Skips(unittest.TestCase):
    LISTED = {('pyverbs', 'test_a.B.test_x'): skips.Listed('no XRC', False),
              ('host', 'test_links x'): skips.Listed('no QEMU', False),
              ('kselftests', 'test_a a.x'): skips.Listed('no page', False),
              ('lab', 'test_b.A.test_x'): skips.Listed('for root', True)}
    # How each suite reports a test that ran, and one that was skipped.
    TOLD = {
        'pyverbs': ('test_x (tests.test_a.B.test_x) ... ok\n', "test_x (tests.test_a.B.test_x) ... skipped 'no XRC'\n"),
        'host': ('== test_links\n[       OK ] x\n', '== test_links\n[  SKIPPED ] REP-6 MEM-10: x\n[  SKIPPED ] t: 1 test(s):\n'
                 '[  SKIPPED ] x\n'),
        'kselftests': ('# test_a\nok 1 a.x\n', '# test_a\nok 1 a.x # SKIP no page\n'),
        'lab': ('test_x (test_b.A.test_x) ... ok\n', "test_x (test_b.A.test_x)\nWhat it is. ... skipped \"for root\"\n"),
    }

    def faults(self, log, skipped, listed=None):
        return skips.faults(log, skipped, self.LISTED if listed is None else listed)

    def test_a_skip_that_is_listed(self):
        for suite, (_, skipped) in self.TOLD.items():
            self.assertEqual(self.faults(skipped, 1), [], suite)

    def test_a_skip_that_is_not_listed(self):
        for suite, (_, skipped) in self.TOLD.items():
            self.assertIn('was skipped, and', self.faults(skipped, 1, {})[0], suite)

    def test_a_skip_for_another_reason(self):
        log = self.TOLD['pyverbs'][1].replace('no XRC', 'no PD')
        self.assertEqual(self.faults(log, 1), [
            'pyverbs test_a.B.test_x was skipped, and selftests/skips does not list it: no PD'])

    def test_a_listed_test_that_ran(self):
        for suite, (ran, _) in self.TOLD.items():
            told = ['%s %s ran, but selftests/skips lists it' % key for key, line in self.LISTED.items()
                    if key[0] == suite and not line.may_run]
            self.assertEqual(self.faults(ran, 0), told, suite)

    def test_a_listed_test_that_does_not_exist(self):
        for suite, (_, skipped) in self.TOLD.items():
            other = {key: line for key, line in self.LISTED.items() if key[0] == suite}
            (_, test), = other
            other[suite, test + 'y'] = skips.Listed('no x', True)
            self.assertEqual(self.faults(skipped, 1, other),
                             ['selftests/skips lists %s %sy, which does not exist' % (suite, test)])

    def test_a_test_that_only_the_newer_one_has(self):
        line = {('pyverbs', 'test_a.B.test_y'): skips.Listed('no x', False, newer=True)}
        self.assertEqual(self.faults(self.TOLD['pyverbs'][1], 1, self.LISTED | line), [])
        self.assertEqual(self.faults(self.TOLD['pyverbs'][0].replace('test_x', 'test_y'), 0, line),
                         ['pyverbs test_a.B.test_y ran, but selftests/skips lists it'])

    def test_a_skip_that_the_log_does_not_name(self):
        self.assertEqual(self.faults('1 passed, 0 failed, 1 skipped\n', 1),
                         ['1 tests were skipped, but the log names 0 of them'])

    def test_what_a_test_prints_before_its_result(self):
        log = 'test_x (tests.test_a.B.test_x)\nWhat it is. ... warning: x\nskipped "no XRC"\n'
        self.assertEqual(self.faults(log, 1), [])

    def test_an_older_python(self):
        self.assertEqual(self.faults("test_x (test_b.A) ... skipped 'for root'\n", 1), [])

    def test_the_list(self):
        listed = skips.allowed()
        self.assertLessEqual({suite for suite, _ in listed}, set(self.TOLD))
        for suite, test in listed:
            if suite == 'lab':
                module, name, method = test.split('.')
                self.assertTrue(hasattr(getattr(importlib.import_module(module), name), method), test)

    def test_each_test_of_the_lab_that_may_skip_itself(self):
        """The source tells of those, too, that run on this machine."""
        listed = skips.allowed()
        for path in glob.glob(os.path.join(LAB, 'tests/unit/test_*.py')):
            with open(path) as file:
                text = file.read()
            found = list(may_skip(text))
            # None is skipped in another way: a whole class, or from within a test.
            self.assertEqual(len(re.findall(r'^ *(?:@unittest\.skip|self\.skipTest|raise unittest\.Skip)', text, re.M)),
                             len(found), path)
            for name, test, reason in found:
                test = '%s.%s.%s' % (os.path.basename(path)[:-3], name, test)
                with self.subTest(test):
                    self.assertEqual(listed.get(('lab', test)), skips.Listed(reason, may_run=True))

    def test_a_line_that_is_wrong(self):
        with tempfile.NamedTemporaryFile('w') as file:
            file.write('# x\n\npyverbs test_a\n')
            file.flush()
            with self.assertRaisesRegex(ValueError, ':3: '):
                skips.allowed(file.name)
