"""What belongs to other parts: fuzzers, README, make bench."""

import contextlib
import glob
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from skualab.host import needs
from skualab.machines import guest
from skualab.target.distro import DISTRO
from testing import lab, LAB, script


class Fuzzers(unittest.TestCase):
    """The last lines of a run (tools/skuad/fuzz/run-fuzzers.sh) tell which fuzzer failed and how."""

    FUZZER = """#!/bin/sh
case $* in --seeds*) exit 0 ;; esac
%s
"""

    def fuzz(self, **scripts):
        with tempfile.TemporaryDirectory() as place:
            for name, text in scripts.items():
                with open(os.path.join(place, name), 'w') as file:
                    file.write(self.FUZZER % text)
                os.chmod(file.name, 0o755)
            done = subprocess.run([os.path.join(LAB, '../skuad/fuzz/run-fuzzers.sh'), '1', '2', '1', place + '/corpus',
                                   place + '/found', *(os.path.join(place, name) for name in scripts)],
                                  capture_output=True, text=True, timeout=60)
            return done.returncode, done.stdout.splitlines()

    def test_none_fails(self):
        status, lines = self.fuzz(fuzz_a='printf "#7\\tDONE cov: 3\\n"', fuzz_b='printf "#8\\tDONE cov: 4\\n"')
        self.assertEqual((status, sorted(lines)[1:]), (0, ['fuzz_a: cov: 3', 'fuzz_b: cov: 4']))
        self.assertEqual(lines[-1], '2 passed, 0 failed, 0 skipped')

    def test_how_one_failed_is_among_the_last_lines(self):
        status, lines = self.fuzz(
            fuzz_a='echo "x.c:3: not so: a == b"; seq 1000; exit 77',
            fuzz_b='seq 1000; kill -KILL $$',
            fuzz_c='echo "==1== ERROR: libFuzzer: timeout after 20 seconds"; seq 1000; exit 70')
        self.assertEqual((status, lines[-1]), (1, '0 passed, 3 failed, 0 skipped'))
        last = '\n'.join(lines[-40:])
        for said in ('fuzz_a: FAILED with status 77', 'not so: a == b', 'fuzz_b: FAILED with status 137',
                     'fuzz_c: FAILED with status 70', 'timeout after 20 seconds'):
            self.assertIn(said, last)


class Together(unittest.TestCase):
    """Two guests of tests/guest/test_together.py connect to the first one as soon as it listens."""

    PROGRAMS = {'hostname': 'echo node2', 'ping': '', 'sleep': '', 'ibv_rc_pingpong': '''n=$(wc -l <calls)
        echo "$@" >>calls
        [ $n -ge 2 ] || { echo "Couldn't connect to node1:18516" >&2; exit 1; }
        %s'''}

    def asks(self, then):
        """(status, what is said, how many times it was tried), if nobody listens twice."""
        with tempfile.TemporaryDirectory() as place:
            for name, text in self.PROGRAMS.items():
                with open(os.path.join(place, name), 'w') as file:
                    file.write('#!/bin/sh\n' + (text % then if '%s' in text else text))
                os.chmod(file.name, 0o755)
            calls = os.path.join(place, 'calls')
            with open(calls, 'w'):
                pass
            words = script('tests/guest/test_together.py').Three.ASKS.replace('/tmp/', place + '/')
            done = subprocess.run(['bash', '-c', words], cwd=place, env={'PATH': place + ':' + os.environ['PATH']},
                                  stdout=subprocess.PIPE, text=True, timeout=60)
            with open(calls) as file:
                return done.returncode, done.stdout, len(file.readlines())

    def test_only_a_connection_is_tried_again(self):
        self.assertEqual(self.asks('echo local; echo 200 iters'), (0, '200 iters\n', 3))
        self.assertEqual(self.asks('echo invalid data in page 3; exit 1'), (1, 'invalid data in page 3\n', 3))


class Readme(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(LAB, '../../README.md')) as file:
            self.text = file.read()

    def section(self, heading):
        return self.text.split('\n## %s\n' % heading)[1].split('\n## ')[0]

    def test_names_what_the_tests_of_rdma_core_miss(self):
        with open(os.path.join(LAB, '../../selftests/skips')) as file:
            missing = re.findall(r'^# These need (.+)\npyverbs', file.read(), re.M)
        told = ' '.join(self.section('What is not there yet').split())
        self.assertGreater(len(missing), 1)
        for name in missing:
            self.assertIn(name, told)

    def test_ci_installs_nothing_that_the_lab_brings(self):
        brought = {*needs.NEEDED.values(), DISTRO.keyring_package, 'uidmap', 'xz-utils'}
        with open(os.path.join(LAB, '../../.ci/run')) as file:
            text = file.read()
        self.assertRegex(text, r'install .*\bpython3\b')
        for text in (text, self.section('Your tests in CI').split('```')[1]):
            self.assertEqual(brought & set(re.findall(r'(?<=[ \t])[a-z][\w-]*', re.sub('#.*', '', text))), set())

    def test_ci_leaves_no_stage_out(self):
        with open(os.path.join(LAB, '../../.ci/run')) as file:
            words, = re.findall(r'^exec make (.*)$', file.read(), re.M)
        done = subprocess.run(['make', '-n', '-C', os.path.join(LAB, '../..'), *words.split()], stdout=subprocess.PIPE, text=True,
                              check=True)
        self.assertRegex(done.stdout, r'(?m)^tools/lab/lab check --all$')

    def test_ci_keeps_packages_until_their_list_changes(self):
        files, = re.findall(r'hashFiles\((.*)\)', self.section('Your tests in CI'))
        for pattern in re.findall(r"'skua/([^']+)'", files):
            self.assertTrue(glob.glob(os.path.join(LAB, '../..', pattern)), pattern)

    def test_ci_has_options_that_there_are(self):
        commands = re.findall(r'lab/lab (\w+)(.*)', self.section('Your tests in CI').replace('\\\n', ' '))
        self.assertLessEqual({'run', 'cache'}, {verb for verb, _ in commands})
        for verb, words in commands:
            status, said = lab(verb, '--help')
            self.assertEqual(status, 0, said)
            for option in re.findall(r' (--\w+)', words):
                self.assertRegex('\n'.join(said), r'(?m)[\[ ]%s\b' % option)


class Bench(unittest.TestCase):
    def test_an_option_that_is_none(self):
        """It would measure for minutes instead of saying so."""
        done = subprocess.run([os.path.join(LAB, '../bench/bench'), '--help'], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn('make bench', done.stderr)

    def setUp(self):
        path = os.path.join(LAB, '../bench/bench')
        loader = importlib.machinery.SourceFileLoader('bench', path)
        self.bench = importlib.util.module_from_spec(importlib.util.spec_from_loader('bench', loader))
        with mock.patch.object(sys, 'path', [os.path.dirname(path), *sys.path]):
            loader.exec_module(self.bench)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.out = os.path.join(place.name, 'bench')
        patch = mock.patch.object(self.bench, 'OUT', self.out)
        patch.start()
        self.addCleanup(patch.stop)

    def ends(self, status, part):
        """main() ends with this status and one line."""
        with mock.patch.object(sys, 'argv', ['bench']), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.bench.main(), status)
        self.assertRegex(said.getvalue(), '^lab: .*%s.*\n$' % part)

    def test_what_ends_it_is_told_in_one_line(self):
        for error, status, part in ((KeyboardInterrupt(), 130, 'interrupted'), (guest.Timeout(), 125, 'does not answer'),
                                    (guest.GuestEnded('QEMU ended'), 125, 'QEMU ended; logs are in'),
                                    (PermissionError(13, 'no', '/x'), 125, '/x: no')):
            with mock.patch.object(self.bench.scene, 'build', side_effect=error):
                self.ends(status, part)

    def test_a_directory_that_cannot_be_made(self):
        with open(self.out, 'w'), mock.patch.object(self.bench.scene, 'build'):
            self.ends(125, '%s: File exists' % self.out)

    def test_what_was_measured_is_kept_where_no_plot_can_be_made(self):
        bench = self.bench
        for number, (error, status, part) in enumerate((
                (subprocess.CalledProcessError(1, ['gnuplot']), 125, 'gnuplot failed'),
                (KeyboardInterrupt(), 130, 'interrupted')), 1):
            with mock.patch.multiple(bench, measure=mock.Mock(return_value=([], 0.5, {}, 1, 2)), show=mock.Mock()), \
                    mock.patch.object(bench.scene, 'build'), mock.patch.object(bench.pair, 'up'), \
                    mock.patch.object(bench.pair, 'show'), mock.patch.object(bench.connections, 'show'), \
                    mock.patch.object(bench.figures, 'show'), \
                    mock.patch.object(bench.storage, 'measure', return_value=3), \
                    mock.patch.object(bench.files, 'measure', return_value=4), \
                    mock.patch.object(bench.jobs, 'measure', return_value=5), \
                    mock.patch.object(bench.shares, 'measure', return_value=6), \
                    mock.patch.object(bench.root, 'told', return_value={}), \
                    mock.patch.object(bench.run, 'new_directory', return_value=self.out), \
                    mock.patch.multiple(bench.compare, rows=mock.Mock(), show=mock.Mock(),
                                        plot=mock.Mock(side_effect=error)), \
                    mock.patch.object(bench.time, 'strftime', return_value=str(number)):
                self.ends(status, part)
            with open('%s/%d.json' % (self.out, number)) as file:
                self.assertEqual(json.load(file)['shares'], 6)

    def test_what_mpi_tells(self):
        told = """moved 123 bytes
latency, 8 B                        4.2 us
bandwidth, 1048576 B             2345.0 MB/s
its latency, 8 B                    9.9 us
"""
        self.assertEqual(self.bench.jobs.TOLD.findall(told), [('latency, 8 B', '4.2', 'us'),
                                                              ('bandwidth, 1048576 B', '2345.0', 'MB/s')])

    WAYS = {'skua': 6.0, 'rxe': 2.0, 'tcp virtio': 3.0, 'tcp skua': 1.5}

    def rows(self):
        """Of a disk and of MPI, by the figures of WAYS."""
        pair, jobs = self.bench.pair, self.bench.jobs
        disk = {way: {name: {'figure': figure * 1e6} for name, *_ in pair.ROWS} for way, figure in self.WAYS.items()}
        messages = {way: {name: (self.WAYS[way], 'MB/s' if more else 'us') for name, _, more in jobs.ROWS}
                    for way in jobs.WAYS}
        return self.bench.compare.rows({'disk': disk}, messages)

    def test_what_is_compared(self):
        found = {name: row for name, *row in self.rows()}
        self.assertEqual(len(found), len(self.bench.pair.ROWS) + len(self.bench.jobs.ROWS))
        self.assertEqual(found['disk: random read, 4 KiB, depth 1'],
                         [{way: figure * 1e6 for way, figure in self.WAYS.items()}, 'op/s', True])
        self.assertEqual(found['disk: read, 128 KiB, depth 32'], [self.WAYS, 'MB/s', True])
        self.assertEqual(found['MPI: latency, 8 B'], [self.WAYS, 'us', False])
        self.assertEqual(found['MPI: bandwidth, 1048576 B'], [self.WAYS, 'MB/s', True])

    def test_times_the_best_of_the_others(self):
        self.assertEqual(self.bench.compare._times(self.WAYS, True),
                         {'skua': 2.0, 'rxe': 2 / 3, 'tcp virtio': 1.0, 'tcp skua': 0.5})
        self.assertEqual(self.bench.compare._times(self.WAYS, False),
                         {'skua': 0.25, 'rxe': 0.75, 'tcp virtio': 0.5, 'tcp skua': 1.0})

    def test_a_plot(self):
        os.makedirs(self.out)
        path = os.path.join(self.out, 'x.svg')

        def gnuplot(words, **_):
            with open(words[1]) as file:
                image, = re.findall("^set output '(.*)'$", file.read(), re.M)
            with open(image, 'w') as file:
                file.write('<svg/>')
        with mock.patch.object(self.bench.compare.chroot, 'run', side_effect=gnuplot), \
                mock.patch.object(self.bench.compare.say, 'line') as line:
            self.bench.compare.plot(self.rows(), path)
        self.assertTrue(os.path.exists(path))
        self.assertIn('x.svg', line.call_args[0][0])
        with open(path[:-4] + '.dat') as file:
            data = file.read().splitlines()
        self.assertIn('"disk: read, 128 KiB, depth 32"\t2.000\t0.667\t1.000\t0.500', data)
        # Less is better.
        self.assertIn('"MPI: latency, 8 B"\t0.250\t0.750\t0.500\t1.000', data)
