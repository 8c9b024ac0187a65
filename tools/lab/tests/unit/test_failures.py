"""Whatever happens is told in one line."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from skualab.host import failure, say
from skualab.roots import stage
from skualab.runs import demo, nodes, run
from skualab.target.distro import DISTRO
from testing import LAB, until


class BuildOfAnotherUser(unittest.TestCase):
    def test_is_named_in_one_line(self):
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(LAB, os.path.join(place, 'tools/lab'))
            os.makedirs(os.path.join(place, 'build/stamps'))
            user = {}
            if os.geteuid() == 0:
                user = {'user': 65534, 'group': 65534, 'extra_groups': []}
                os.chmod(place, 0o755)
            else:
                os.chmod(place + '/build', 0o555)
            for words in (['run', '--', 'true'], ['build'], ['exec', '--', 'true']):
                done = subprocess.run([place + '/tools/lab/lab', *words], capture_output=True, text=True,
                                      timeout=60, **user)
                self.assertEqual((done.returncode, done.stderr.count('\n')), (125, 1), done.stderr)
                self.assertIn(place + '/build', done.stderr)
                self.assertIn('ermission denied', done.stderr)


class NoTraceback(unittest.TestCase):
    """Whatever happens is one line that says what to do."""

    def told(self, error, status=125):
        with mock.patch.object(failure.paths, 'LOGS', '/dev/null/log'):
            self.assertEqual(failure.told(error)[0], status)
            text = failure.told(error)[1]
        self.assertNotIn('\n', text)
        return text

    def test_errors(self):
        self.assertIn('make room', self.told(OSError(28, 'No space left on device', '/x/y')))
        self.assertIn('lab doctor', self.told(FileNotFoundError(2, 'No such file or directory', 'apt-cache')))
        self.assertIn('apt-cache failed (status 100)', self.told(subprocess.CalledProcessError(100, ['apt-cache', 'x'])))
        self.assertIn('end within 5 s', self.told(subprocess.TimeoutExpired(['/bin/x', 'y'], 5)))
        self.assertIn('please report it: ValueError: a b', self.told(ValueError('a\nb')))
        self.assertEqual(self.told(say.LabError('x ftp://a:b@c/d', 126), 126), 'x ftp://***@c/d')

    def test_a_full_disk(self):
        with mock.patch.object(failure, 'ALMOST_NOTHING', 1 << 62):
            self.assertIn('SKUA_BUILD=DIR', self.told(OSError(28, 'No space left on device', '/x/y')))
            self.assertIn('SKUA_BUILD=DIR', failure.cause('/dev/null'))

    def test_a_panic_in_the_demonstration(self):
        play = mock.Mock(directory='/there')
        play.guest.fault, play.guest.why = 'Kernel panic', lambda: "the guest's kernel: Kernel panic"
        play.start.side_effect = demo.guest.GuestEnded()
        play.__enter__, play.__exit__ = lambda play: play, lambda *_: None
        with mock.patch.object(demo.scene, 'Scene', return_value=play), mock.patch.object(demo.run, 'new_directory'):
            with self.assertRaises(say.LabError) as caught:
                demo.demo(DISTRO.kernel)
        self.assertEqual(failure.told(caught.exception),
                         (126, "the guest's kernel: Kernel panic; its logs are in /there"))

    def test_a_panic_while_guests_boot(self):
        """Has the status that it has in lab run, whatever became of the others."""
        def node(name, *outcome):
            return mock.Mock(outcome=outcome, play=mock.Mock(directory='/' + name), **{'boot.return_value': None})
        late, panic, lost = ((run.TIMEOUT, 'timeout', 'late'), (run.KERNEL, 'kernel', 'Kernel panic'), (run.LAB, 'lab', 'QEMU'))
        for outcomes, status, logs in (((late, panic), 126, '/1'), ((lost, panic), 126, '/1'), ((late, lost), 124, '/0'),
                                       ((lost,), 125, '/0')):
            up = nodes.Nodes([node(str(i), *outcome) for i, outcome in enumerate(outcomes)], None)
            with self.assertRaises(say.LabError) as caught:
                up.must_boot(0)
            self.assertIn(outcomes[-1][2], self.told(caught.exception, status))
            self.assertTrue(str(caught.exception).endswith('; its logs are in ' + logs))

    def test_a_step_that_fails_for_a_reason_of_its_own(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.multiple(stage.paths, STAMPS=place, LOGS=place), \
                mock.patch.object(say, 'line'):
            for said, shown in (('a.c: In function f:\na.c:3:1: error: b\nx.c:1: error: c\nmake: *** Error 1\n\n', 'a.c:3:1: error: b'),
                                ('one\nlast\n\n', 'last'), ('', 'nothing was said')):
                for script, how in (('exit 2', ' (status 2)'), ('sleep 9', 'took more than 1 s')):
                    words = ['sh', '-c', 'printf "%%s" "$0"; %s' % script, said]
                    one = stage.Stage('s', lambda log: subprocess.run(words, stdout=log, check=True, timeout=1),
                                      lambda: [], place + '/none', 1)
                    with self.assertRaises(say.LabError) as caught:
                        one.run()
                    text = self.told(caught.exception)
                    self.assertIn(how, text)
                    self.assertIn('; its log is %s/s.log; ' % place, text)
                    self.assertRegex(text, 'run `lab doctor`$' if 'status' in how else 'again when this machine has less to do$')
                    if 'status' in how:
                        self.assertTrue(text.startswith('s: %s (' % shown), text)

    def test_ctrl_c(self):
        """And a closed terminal, a cancelled job, and a second one of each."""
        with tempfile.TemporaryDirectory() as place:
            with open(place + '/unshare', 'w') as file:
                file.write('#!/bin/sh\ntouch %s/started\nexec sleep 60\n' % place)
            os.chmod(file.name, 0o755)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                for wait in (0, 0.01, 0.1):
                    # Whoever runs this under nohup ignores SIGHUP, and so would the lab.
                    lab = subprocess.Popen([os.path.join(LAB, 'lab'), 'doctor'], stderr=subprocess.PIPE, text=True,
                                           stdout=subprocess.DEVNULL, env={**os.environ, 'SKUA_BUILD': place + '/build',
                                                                           'PATH': place + ':' + os.environ['PATH']},
                                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
                    until(lambda: os.path.exists(place + '/started'))
                    os.unlink(place + '/started')
                    for _ in 'ab':
                        lab.send_signal(number)
                        time.sleep(wait)
                    said = lab.communicate(timeout=60)[1]
                    self.assertIn(said, ('', 'lab: interrupted\n'))
                    self.assertIn(lab.returncode, (130, -number))
