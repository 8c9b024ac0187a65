"""Paragraphs of tools/mutants."""

import contextlib
import glob
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from testing import LAB, script


class Mutants(unittest.TestCase):
    """Paragraphs of tools/mutants."""

    SOURCE = 'a\nb\nb\nc\n'

    def setUp(self):
        self.mutants = script('../mutants/mutants')
        self.mutants.TREE = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.mutants.TREE)
        self.mutants.write(os.path.join(self.mutants.TREE, 'x.c'), self.SOURCE)

    def texts(self, *lines, found='found by worlds'):
        return self.mutants.Mutant('\n'.join(['REC-1: x', 'in x.c', found, *lines])).texts()

    def refused(self, *lines, **options):
        with self.assertRaises(self.mutants.TableError) as caught:
            self.texts(*lines, **options)
        self.assertIn('REC-1: x: ', str(caught.exception))

    def test_a_change(self):
        self.assertEqual(self.texts(' a', '-b', '+d', ' b'), {'x.c': 'a\nd\nb\nc\n'})

    def test_changes_of_several_places(self):
        self.assertEqual(self.texts('-a', 'in x.c', '-c', '+e'), {'x.c': 'b\nb\ne\n'})

    def test_lines_that_are_not_there(self):
        self.refused('-d')
        self.refused(' a', '-c')        # not one below the other
        self.refused('+d')              # no place

    def test_lines_that_are_there_twice(self):
        self.refused('-b', '+d')

    def test_a_line_that_is_nothing(self):
        self.refused('-a', 'b')

    def test_somebody_or_nobody_finds_it(self):
        self.texts('-a', found='same: none sees it')
        self.texts('-a', found='survives: none looks')
        self.refused('-a', 'found by worlds', found='same: none sees it')
        self.refused('found by a/b', '-a')      # the first would be lost
        with self.assertRaises(self.mutants.TableError):
            self.mutants.Mutant('REC-1: x\nin x.c\n-a')

    def test_paragraphs(self):
        path = os.path.join(self.mutants.TREE, 'x.table')
        self.mutants.write(path, '# all\n\nA: x\nin x.c\nfound by worlds, a/b *c\n-a\n\n\nB: y\nin x.c\nsame: z\n-c\n')
        self.assertEqual([(one.name, one.checks, one.skip) for one in self.mutants.read_table(path)],
                         [('A: x', ['worlds', 'a/b *c'], ''), ('B: y', [], 'same: z')])

    def test_those_that_fail_name_the_rules(self):
        self.mutants.write(os.path.join(self.mutants.TREE, 'tools/skuad/harness/a.c'),
                           '/* CMD-2: why, and\n * more */\nstatic void d(void **state)\n/* REC-1: */\nint e')
        mutant = self.mutants.Mutant('REC-1 CMD-2: x, as in CMD-3\nin x.c\nfound by a\n-a')
        self.assertEqual(mutant.rules, {'REC-1', 'CMD-2'})
        for failed, missing in ((['REC-1: a', 'CMD-2 CMD-9: b'], set()), (['REC-1: CMD-2'], {'CMD-2'}),
                                (['c', 'e'], {'REC-1', 'CMD-2'}), (['d', 'REC-1: c'], set()), ([], set())):
            self.assertEqual(self.mutants.unnamed(mutant, 'harness/a *c', failed), missing)
        self.assertEqual(self.mutants.unnamed(mutant, 'provider/a', ['c']), set())

    def rules(self, *more, exempt=''):
        """The status, and the first word of each line about the rules of a manual and some mutants."""
        self.mutants.MANUAL, self.mutants.EXEMPT = self.mutants.TREE, os.path.join(self.mutants.TREE, 'x.exempt')
        self.mutants.write(os.path.join(self.mutants.TREE, 'x.rst'), '**CMD-1** One.\n\n**CMD-2** Two.\n**CMD-3** Three.\n')
        self.mutants.write(self.mutants.EXEMPT, '# why\n\n' + exempt)
        mutants = [self.mutants.Mutant(name + ': x\nin x.c\n%s\n-a' % found) for name, found in (
            ('CMD-1', 'found by a'), ('CMD-3', 'survives: none looks'), *((name, 'found by a') for name in more))]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return self.mutants.rules(mutants), re.findall(r'^[A-Z\d-]+', said.getvalue(), re.M)

    def test_rules_without_a_mutant(self):
        self.assertEqual(self.rules(), (1, ['CMD-2', 'CMD-3', '1']))
        self.assertEqual(self.rules('CMD-2 CMD-3'), (0, ['3']))
        self.assertEqual(self.rules('CMD-2 CMD-3', 'CMD-4'), (1, ['CMD-4', '3']))

    def test_rules_with_a_reason(self):
        self.assertEqual(self.rules(exempt='CMD-2 a definition\nCMD-3 none can tell\n'), (0, ['1']))
        self.assertEqual(self.rules('CMD-2', exempt='CMD-2 a definition\nCMD-3 none can tell\n'), (1, ['CMD-2', '2']))
        self.assertEqual(self.rules('CMD-2', exempt='CMD-3 none can tell\nCMD-5 is gone\n'), (1, ['CMD-5', '2']))
        for line in ('CMD-2', 'CMD-2 ', 'CMD-2: why', 'why CMD-2', 'CMD-2 one\nCMD-2 two'):
            with self.assertRaises(self.mutants.TableError):
                self.rules(exempt=line + '\n')

    def test_every_rule_has_a_mutant_or_a_reason(self):
        done = subprocess.run([os.path.join(LAB, '../mutants/mutants'), '--rules'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_table_fits_the_sources(self):
        mutants = script('../mutants/mutants')
        for path in glob.glob(os.path.join(LAB, '../mutants/*.table')):
            for mutant in mutants.read_table(path):
                with self.subTest(mutant.name):
                    mutant.texts()

    def test_the_kselftests_that_are_named_are_there(self):
        mutants = script('../mutants/mutants')
        checks = {check for mutant in mutants.read_table(os.path.join(LAB, '../mutants/driver.table'))
                  for check in mutant.checks}
        for check in sorted(checks):
            program, _, test = check.partition(' ')
            path = os.path.join(LAB, '../../selftests', program + '.c')
            if program == 'skua_selftest':
                self.assertEqual(test, '')
            if not test or program.endswith('.sh'):
                continue
            with self.subTest(check), open(path) as file:
                self.assertRegex(file.read(), r'\bTEST\w*\((\w+, *)?%s\b' % re.escape(test))
