"""make check."""

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from skualab.checks import changed, check, kinds, report, schedule, skips
from skualab.checks.table import CHECKS
from skualab.host import say
from skualab.products.kernels import DEBUG
from skualab.roots import root, stage
from testing import LAB, until


class Debug(unittest.TestCase):
    def test_all_of_the_debug_kernels_and_nothing_else(self):
        ran = []
        with mock.patch.object(check.Check, 'run', lambda one: ran.append(one) or ([1, 0, 0], True)), \
                contextlib.redirect_stdout(io.StringIO()):
            report.check([], debug=True)
        self.assertTrue(ran)
        for one in CHECKS:
            words = one.command if isinstance(one.command, list) else []
            self.assertEqual(one in ran, not set(words).isdisjoint(DEBUG), one.name)


class Checks(unittest.TestCase):
    """How make check counts, what it keeps, and that a budget ends a stage."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.count = os.path.join(self.place.name, 'count')

    def stage(self, script, budget=20):
        one = check.Check('t', budget, [], ['sh', '-c', 'echo >>%s; %s' % (self.count, script)])
        one.directory = os.path.join(self.place.name, 't')
        return one

    def runs(self):
        with open(self.count) as file:
            return len(file.readlines())

    def test_counts(self):
        self.assertEqual(self.stage('echo "3 passed, 0 failed, 0 skipped"').run(), ([3, 0, 0], False))

    def test_a_skip_that_is_not_listed_fails_its_stage(self):
        script = 'echo "ok 1 a # SKIP why"; echo "1 passed, 0 failed, 1 skipped"'
        with mock.patch.object(skips, 'allowed', return_value={('kselftests', 'a'): skips.Listed('why', False)}):
            self.assertEqual([self.stage(script).run() for _ in 'ab'], [([1, 0, 1], False), ([1, 0, 1], True)])
        # A pass is not kept either when its skip is not listed any more.
        self.assertEqual(self.stage(script).run(), ([1, 1, 1], False))
        with open(os.path.join(self.place.name, 't/log')) as file:
            self.assertIn('not ok - kselftests a was skipped', file.read())

    def test_a_command_without_counts_is_one_test(self):
        self.assertEqual(self.stage('true').run()[0], [1, 0, 0])
        self.assertEqual(self.stage('false').run()[0], [0, 1, 0])

    def test_death_after_good_counts_is_a_failure(self):
        self.assertEqual(self.stage('echo "3 passed, 0 failed, 0 skipped"; exit 3').run()[0], [3, 1, 0])

    def test_a_pass_is_kept_and_a_failure_is_not(self):
        self.assertEqual([self.stage('true').run() for _ in 'ab'], [([1, 0, 0], False), ([1, 0, 0], True)])
        self.assertEqual(self.runs(), 1)
        for _ in 'ab':
            self.assertEqual(self.stage('false').run(), ([0, 1, 0], False))
        self.assertEqual(self.runs(), 3)

    def test_the_root_may_be_made_beside_a_stage_that_needs_nothing(self):
        with mock.patch.object(root, 'VERSIONS', os.path.join(self.place.name, 'versions')):
            ran = [self.stage('echo made >%s' % root.VERSIONS).run() for _ in 'ab']
        self.assertEqual(ran, [([1, 0, 0], False), ([1, 0, 0], True)])

    def test_inputs_that_change_on_the_way_are_not_a_pass_to_keep(self):
        path = os.path.join(self.place.name, 'input')
        with open(path, 'w') as file:
            file.write('before')
        one = self.stage('echo after >%s' % path)
        one.inputs = [path]
        one.run()
        self.assertIsNone(one.kept(one.hash()))
        with open(path, 'w') as file:
            file.write('before')
        self.assertIsNone(one.kept(one.hash()))

    def test_a_pass_elsewhere_is_kept_unless_something_changed_on_the_way(self):
        path = os.path.join(self.place.name, 'input')
        one = self.stage('false')
        one.inputs, one.needs = [path], [mock.Mock()]
        for before, after, kept in ('1', '1', True), ('1', '2', False):
            with mock.patch.object(root, 'VERSIONS', os.path.join(self.place.name, 'versions' + after)):
                with open(path, 'w') as file:
                    file.write(before)
                sources = one.sources()
                # The root is made on the way.
                for name, text in (path, after), (root.VERSIONS, 'gcc 14'):
                    with open(name, 'w') as file:
                        file.write(text)
                one.passed_elsewhere(sources, 'it printed this')
                self.assertEqual(one.run(), ([1, 0, 0], True) if kept else ([0, 1, 0], False))
                if kept:
                    with open(os.path.join(one.directory, 'log')) as file:
                        self.assertEqual(file.read(), 'it printed this')

    def test_what_a_guest_leaves_is_no_input(self):
        with mock.patch.object(check, 'OUT', self.place.name):
            one = check.Check('t', 1, [], kinds.in_guest('t', 1, 'true'))
            before = one.hash()
            os.makedirs(os.path.join(self.place.name, 't', 'guest'))
            with open(os.path.join(self.place.name, 't', 'guest', 'dmesg.log'), 'w') as file:
                file.write('x')
            self.assertEqual(one.hash(), before)

    def test_what_tested_nothing_has_failed(self):
        self.assertEqual(self.stage('echo "0 passed, 0 failed, 0 skipped"').run()[0], [0, 1, 0])
        self.assertEqual(self.stage('echo "0 passed, 0 failed, 7 skipped"').run()[0][:2], [0, 2])

    def test_what_cannot_be_built_is_told_in_the_log_of_the_stage(self):
        def broken():
            raise say.LabError('modules failed: no compiler')
        one = self.stage('true')
        one.run()
        one.needs = [mock.Mock(run=broken)]
        self.assertEqual(one.run(), ([0, 1, 0], False))
        with open(os.path.join(one.directory, 'log')) as file:
            self.assertIn('no compiler', file.read())
        self.assertEqual(os.listdir(one.directory), ['log'])

    def test_passwords_are_not_in_the_log_of_a_stage(self):
        with mock.patch.object(report, 'CHECKS', [self.stage('echo E: http://me:secret@mirror/x: no answer; false')]), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            report.check([])
        self.assertIn('E: http://***@mirror/x: no answer', said.getvalue())
        one = self.stage('true')
        one.passed_elsewhere(one.sources(), 'from http://me:secret@mirror/x')
        with open(os.path.join(one.directory, 'log')) as file:
            self.assertEqual(file.read(), 'from http://***@mirror/x')

    def test_a_failed_stage_is_named_at_the_end(self):
        with mock.patch.object(report, 'CHECKS', [self.stage('echo why; false')]), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(report.check([]), 1)
        lines = said.getvalue().splitlines()
        self.assertIn('    why', lines)
        self.assertTrue(lines[-4].startswith('failed: t, artefacts in '), lines)

    def test_failed_tests_are_shown_although_others_follow(self):
        log = os.path.join(self.place.name, 'log')
        with open(log, 'w') as file:
            file.writelines('%s\n' % text for text in (
                'ok 1 a', 'not ok 2 b', '# why b', *['ok'] * 20, '[  ERROR   ] --- why c', '[  FAILED  ] c', *['ok'] * 20))
        said = ''.join(report.failures(log, each=1))
        self.assertEqual(said, 'not ok 2 b\n# why b\n[  ERROR   ] --- why c\n[  FAILED  ] c\n')

    def test_what_an_assertion_says_before_the_result_is_shown(self):
        log = os.path.join(self.place.name, 'log')
        with open(log, 'w') as file:
            file.writelines('%s\n' % text for text in (
                '#  RUN           a ...', '#            OK  a', 'ok 1 a', '#  RUN           b ...', '# b.c:9:b:Expected 1',
                '# b: Test failed', '#          FAIL  b', 'not ok 2 b', '#  RUN           c ...', 'ok 3 c'))
        self.assertEqual(''.join(report.failures(log)),
                         '# b.c:9:b:Expected 1\n# b: Test failed\n#          FAIL  b\nnot ok 2 b\n')

    def test_what_unittest_says_of_a_failure_is_shown_whole(self):
        log = os.path.join(self.place.name, 'log')
        with open(log, 'w') as file:
            file.write('test_a ... ok\n=====\nERROR: test_b (tests)\nTraceback:\n  there\nOops\n\n-----\nRan 2 tests\n')
        self.assertEqual(''.join(report.failures(log, each=1)), 'ERROR: test_b (tests)\nTraceback:\n  there\nOops\n')

    def test_whatever_needs_something_built_needs_the_root_first(self):
        for one in CHECKS:
            self.assertIn(root.STAGE, list(one.needs)[:1] or [root.STAGE], one.name)

    def test_budget(self):
        self.assertEqual(self.stage('sleep 60', budget=1).run()[0], [0, 1, 0])


class EarlierSkuad(unittest.TestCase):
    """make check leaves a guest's stage out when skuad alone changed since it passed, and says so."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.skuad = stage.Tree(self.path('skuad'), 'test_*')
        os.mkdir(self.skuad.path)
        for patch in (mock.patch.object(check.programs, 'SKUAD_SOURCES', self.skuad),
                      mock.patch.object(root, 'VERSIONS', self.path('versions'))):
            patch.start()
            self.addCleanup(patch.stop)
        for name in 'skuad/core.c', 'driver.c', 'versions':
            self.write(name, 'first')

    def path(self, name):
        return os.path.join(self.place, name)

    def write(self, name, text):
        with open(self.path(name), 'w') as file:
            file.write(text)

    def check(self, *words, **options):
        """The names of the stages that ran, the line about those that were left out, the last line, and the status."""
        stages = [check.Check(name, 20, inputs, ['sh', '-c', 'echo ran >>%s.ran; %s' % (self.path(name), script)],
                              [mock.Mock()], smoke=smoke)
                  for name, smoke, inputs, script in (
                      ('host', None, [self.skuad], 'true'), ('smoke', True, [self.skuad, self.path('driver.c')], 'true'),
                      ('guest', False, [self.skuad, self.path('driver.c')], 'true'),
                      ('sick', False, [self.skuad, self.path('driver.c')], 'test -e %s' % self.path('cured')))]
        for one in stages:
            one.directory = self.path(one.name)
        with mock.patch.object(report, 'CHECKS', stages), contextlib.redirect_stdout(io.StringIO()) as said:
            status = report.check(list(words), **options)
        ran = {one.name for one in stages if os.path.exists(self.path(one.name + '.ran'))}
        for name in ran:
            os.unlink(self.path(name + '.ran'))
        lines = said.getvalue().splitlines()
        return ran, [text for text in lines if 'earlier skuad' in text], lines[-1], status

    def test_those_that_are_left_out_are_told_and_not_counted(self):
        self.write('cured', '')
        self.assertEqual(self.check(), ({'host', 'smoke', 'guest', 'sick'}, [], '4 passed, 0 failed, 0 skipped', 0))
        self.assertEqual(self.check(), (set(), [], '4 passed, 0 failed, 0 skipped', 0))
        self.write('skuad/core.c', 'second')
        ran, told, last, status = self.check()
        self.assertEqual((ran, last, status), ({'host', 'smoke'}, '2 passed, 0 failed, 0 skipped', 0))
        self.assertRegex(told[0], '^2 stages were left out and are not counted.* make check ALL=1: guest sick$')
        # Until they ran, whatever skuad becomes.
        self.assertEqual(self.check()[:1] + self.check()[2:3], (set(), '2 passed, 0 failed, 0 skipped'))
        self.write('skuad/core.c', 'third')
        self.assertEqual(self.check()[0], {'host', 'smoke'})
        self.assertEqual(self.check(whole=True), ({'guest', 'sick'}, [], '4 passed, 0 failed, 0 skipped', 0))
        self.assertEqual(self.check()[1], [])

    def test_whoever_asks_for_them_gets_them(self):
        for number, (words, options) in enumerate(((['guest'], {}), ([], {'full': True}), ([], {'whole': True}))):
            self.write('skuad/core.c', 'a%d' % number)
            self.check(whole=True)
            self.write('skuad/core.c', 'b%d' % number)
            self.assertIn('guest', self.check(*words, **options)[0])

    def test_one_that_failed_or_whose_other_inputs_changed_runs(self):
        self.assertIn('sick', self.check()[0])
        self.write('skuad/core.c', 'second')
        self.assertIn('sick', self.check()[0])
        self.write('driver.c', 'second')
        self.assertIn('guest', self.check()[0])
        self.write('skuad/core.c', 'third')
        self.write('versions', 'second')
        self.assertIn('guest', self.check()[0])

    def test_the_smoke_tests(self):
        """Of the stages with guests that are in make check some are smoke tests. Whatever tests the device without one
        is none."""
        guests = {one.name for one in CHECKS if one.smoke is not None}
        smoke = {one.name for one in CHECKS if one.smoke and not one.full}
        self.assertTrue(smoke)
        self.assertGreater(len(guests), 10 * len(smoke))
        self.assertFalse(guests & {'skuad', 'skuad-tsan', 'worlds', 'fuzz', 'man', 'completion', 'lab'})
        self.assertFalse([one.name for one in CHECKS if one.name.startswith(('guest-', 'pyverbs-', 'loss'))
                          and one.name not in guests])


class AtOnce(unittest.TestCase):
    """Two stages run at once, except where they would be in each other's way."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def stage(self, name, script, **how):
        one = check.Check(name, 20, [], ['sh', '-c', 'cd %s; %s' % (self.place.name, script)], **how)
        one.directory = os.path.join(self.place.name, name + '.d')
        return one

    def run_all(self, *stages, places=2):
        with mock.patch.object(schedule, 'places', lambda: places):
            return [(one.name, counts[0]) for one, counts, _, _ in schedule.Schedule(stages).run()]

    # Ends well where the other one begins before it ends.
    MEETS = 'touch {0}; for i in $(seq 100); do [ -e {1} ] && exit; sleep 0.1; done; exit 1'
    # Ends well where no other runs.
    ALONE = 'mkdir lock && sleep 0.2 && rmdir lock'

    def test_two(self):
        ended = self.run_all(self.stage('a', self.MEETS.format('a', 'b')), self.stage('b', self.MEETS.format('b', 'a')))
        self.assertEqual(sorted(ended), [('a', 1), ('b', 1)])

    def test_one_where_there_is_room_for_one(self):
        stages = [self.stage(name, self.ALONE) for name in 'abc']
        self.assertEqual(self.run_all(*stages, places=1), [('a', 1), ('b', 1), ('c', 1)])

    def test_those_that_write_in_one_place_take_turns_and_others_go_on(self):
        ended = self.run_all(self.stage('a', self.MEETS.format('a', 'c') + '; exit 1', writes='x'),
                             self.stage('b', 'true', writes='x'),
                             self.stage('c', self.MEETS.format('c', 'a')))
        self.assertEqual({name for name, passed in ended if passed}, {'a', 'b', 'c'})
        ended = self.run_all(*[self.stage(name + '2', self.ALONE, writes='x') for name in 'abc'])
        self.assertEqual(ended, [('a2', 1), ('b2', 1), ('c2', 1)])

    def test_who_measures_is_alone(self):
        stages = [self.stage(name, self.ALONE, alone=name == 'b') for name in 'ab']
        self.assertEqual(sorted(self.run_all(*stages)), [('a', 1), ('b', 1)])

    def test_what_one_makes_others_wait_for_and_for_no_more(self):
        made = os.path.join(self.place.name, 'made')
        thing = mock.Mock(is_current=lambda: os.path.exists(made))

        def user(name, script):
            return self.stage(name, '[ -e made ] || exit 1; ' + script, needs=[thing])

        ended = self.run_all(self.stage('maker', 'touch b; sleep 0.5; touch made; ' + self.MEETS.format('a', 'c'), makes=thing),
                             user('user', self.MEETS.format('c', 'a')), self.stage('other', self.MEETS.format('d', 'b')))
        self.assertEqual(sorted(ended), [('maker', 1), ('other', 1), ('user', 1)])
        self.assertEqual(ended[0][0], 'other')
        # One that is made already delays nobody, and one that fails does not hold them for ever.
        self.assertEqual(dict(self.run_all(self.stage('maker2', self.MEETS.format('e', 'f'), makes=thing),
                                           user('user2', self.MEETS.format('f', 'e')))), {'maker2': 1, 'user2': 1})
        os.remove(made)
        self.assertEqual(self.run_all(self.stage('maker3', 'exit 1', makes=thing), user('user3', 'true')),
                         [('maker3', 0), ('user3', 0)])
        # Where a user comes first, and makes it, the maker waits.
        thing.run = mock.Mock(side_effect=lambda: subprocess.run('sleep 0.5; touch ' + made, shell=True, check=True))
        self.assertEqual(self.run_all(user('user4', 'true'), self.stage('maker4', '[ -e made ]', makes=thing)),
                         [('user4', 1), ('maker4', 1)])

    def test_a_fault_of_the_lab_is_not_lost(self):
        with self.assertRaises(ZeroDivisionError), mock.patch.object(check.Check, 'run', lambda one: 1 // 0):
            self.run_all(self.stage('a', 'true'))

    def test_what_runs_ends_with_an_interruption(self):
        one = self.stage('a', 'echo $$ >pid; sleep 77')
        left, pid = schedule.Schedule([one]), os.path.join(self.place.name, 'pid')

        def interrupted(timeout):
            until(lambda: os.path.exists(pid) and os.path.getsize(pid))
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt), mock.patch.object(left, 'ended', mock.Mock(get=interrupted)):
            list(left.run())
        with open(pid) as file:
            process = file.read().strip()
        # Its keeper may have to reap it.
        until(lambda: not os.path.exists('/proc/' + process))

    def test_a_small_machine_runs_one(self):
        for processors, memory, number in ((1, 64 << 30, 1), (2, 8 << 30, 1), (2, 20 << 30, 2), (64, 64 << 30, 2)):
            with mock.patch.object(schedule.os, 'sched_getaffinity', lambda _, n=processors: range(n)), \
                    mock.patch.object(schedule, '_available', lambda n=memory: n):
                self.assertEqual(schedule.places(), number)


class Changed(unittest.TestCase):
    """lab check --changed, in a repository of its own."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = os.path.realpath(place.name)
        for name in 'drivers/qp.c', 'drivers/cq.c', 'Documentation/a.rst':
            self.write(name)
        self.git('init', '-q')
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'first')
        for patch in (mock.patch.object(changed.paths, 'REPO', self.place),
                      mock.patch.object(changed.say, 'line', self.say)):
            patch.start()
            self.addCleanup(patch.stop)
        self.said = []

    def say(self, text):
        self.said.append(text)

    def git(self, *words):
        done = subprocess.run(['git', '-c', 'user.name=n', '-c', 'user.email=e', '-C', self.place, *words],
                              stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def write(self, name, text=''):
        path = os.path.join(self.place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)

    def stages(self, revision=''):
        """Those that are chosen of some, by name."""
        def at(*names):
            return [os.path.join(self.place, name) for name in names]
        stages = [check.Check('guest', 900, at('drivers'), ['lab', 'run']),
                  check.Check('docs', 60, at('Documentation'), ['x']),
                  check.Check('quick', 30, at('drivers/qp.c'), ['']), check.Check('script', 90, [], at('drivers/cq.c'))]
        return [one.name for one in changed.only(stages, revision)]

    def test_the_stages_of_a_changed_file_and_the_short_ones_first(self):
        self.write('drivers/qp.c', 'other')
        self.assertEqual(self.stages(), ['quick', 'guest'])

    def test_files_that_are_new_gone_or_staged(self):
        self.write('Documentation/new.rst')
        os.unlink(os.path.join(self.place, 'drivers/cq.c'))
        self.assertEqual(self.stages(), ['docs', 'script', 'guest'])
        self.git('add', '.')
        self.assertEqual(self.stages(), ['docs', 'script', 'guest'])

    def test_a_file_that_was_renamed_is_gone_and_new(self):
        self.git('mv', 'drivers/qp.c', 'Documentation/qp.c')
        self.assertEqual(self.stages(), ['quick', 'docs', 'guest'])

    def test_nothing_changed(self):
        self.write('README')
        self.assertEqual(self.stages(), [])
        os.unlink(os.path.join(self.place, 'README'))
        self.assertEqual(self.stages(), [])
        self.assertIn('no stage has to run', self.said[0])
        self.assertTrue(self.said[1].startswith('no file changed since '), self.said)
        with mock.patch.object(report, 'Schedule', side_effect=AssertionError('a stage is run')):
            self.assertEqual(report.check(['man'], since=''), 0)

    def test_the_default_is_where_the_branch_left_its_upstream(self):
        first = self.git('rev-parse', 'HEAD')
        self.git('branch', 'upstream')
        self.git('checkout', '-q', '-b', 'mine', '--track', 'upstream')
        self.write('drivers/qp.c', 'mine')
        self.git('commit', '-q', '-a', '-m', 'mine')
        self.git('checkout', '-q', 'upstream')
        self.write('Documentation/a.rst', 'theirs')
        self.git('commit', '-q', '-a', '-m', 'theirs')
        self.git('checkout', '-q', 'mine')
        self.assertEqual(self.stages(), ['quick', 'guest'])
        self.assertIn(first[:12], self.said[0])
        self.assertEqual(self.stages('HEAD'), [])
        self.assertEqual(self.stages('upstream'), ['quick', 'docs', 'guest'])

    def test_a_revision_that_is_none(self):
        with self.assertRaisesRegex(say.LabError, "'nowhere'"):
            self.stages('nowhere')


class CheckModules(unittest.TestCase):
    def test_each_source_is_read_by_sparse(self):
        for said, status in (('  CHECK   a.c\n  CHECK   b.c', 0), ('  CHECK   a.c', 1), ('', 1),
                             ('  CHECK   a.c\na.c:1:1: warning: wrong\n  CHECK   b.c', 1)):
            with self.subTest(said=said), tempfile.TemporaryDirectory() as where:
                for place in 'tools/lab/in-root', 'drivers', 'selftests', 'out/drivers', 'out/selftests':
                    os.makedirs(os.path.join(where, place))
                for name in 'out/drivers/a.c', 'out/drivers/skua.mod.c', 'out/selftests/b.c':
                    open(os.path.join(where, name), 'w').close()
                script = shutil.copy(os.path.join(LAB, 'in-root/check-modules'), os.path.join(where, 'tools/lab/in-root'))
                with open(os.path.join(where, 'drivers/build-modules'), 'w') as file:
                    file.write("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % said)
                os.chmod(file.name, 0o755)
                done = subprocess.run([script, 'headers', os.path.join(where, 'out')], capture_output=True, text=True,
                                      timeout=60)
                self.assertEqual((done.returncode, done.stderr), (status, ''), done.stdout)

    def test_makes_the_directory_that_it_builds_in(self):
        with tempfile.TemporaryDirectory() as where:
            out = os.path.join(where, 'not', 'there', 'yet')
            done = subprocess.run([os.path.join(LAB, 'in-root/check-modules'), os.path.join(where, 'no-headers'), out],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn('no-headers', done.stdout)
            self.assertEqual(done.stderr, '')
