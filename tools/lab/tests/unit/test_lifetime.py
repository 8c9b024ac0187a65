"""What the lab starts does not outlive it, and two labs do not disturb each other."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from skualab.checks import check
from skualab.host import lock, say, sockets
from skualab.roots import apt, program, stage
from testing import LAB, until


class Lifetime(unittest.TestCase):
    """What the lab starts does not outlive it."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def pids(self, count):
        path = os.path.join(self.place.name, 'pids')

        def said():
            with contextlib.suppress(FileNotFoundError), open(path) as file:
                return file.read().split()
            return []
        until(lambda: len(said()) == count)
        return [int(text) for text in said()]

    def gone(self, pids):
        # Who is ended may stay as a zombie where nobody reaps orphans.
        def alive(pid):
            try:
                with open('/proc/%d/stat' % pid) as file:
                    return file.read().rpartition(')')[2].split()[0] not in 'ZX'
            except OSError:
                return False
        until(lambda: not any(map(alive, pids)))

    def script(self, text):
        """A Python program that has the lab's modules."""
        # Under nohup it would inherit that SIGHUP is ignored.
        return subprocess.Popen([sys.executable, '-B', '-c', 'import sys, time; sys.path.insert(0, %r)\n%s' % (LAB, text)],
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    # Stands for unshare, and its child for the program.
    FAMILY = "['sh', '-c', 'echo $$ >>%s/pids; trap : TERM; sh -c \\'echo $$ >>%s/pids; trap \"\" TERM; " \
             "sleep 77; sleep 77\\'; sleep 77']"

    def test_of_a_lab_that_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGHUP):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.place.name + '/pids')
            lab = self.script("from skualab.roots import chroot, program\nchroot.words = lambda command, **_: command\n"
                              "program.Process(%s, None)\ntime.sleep(60)" % self.FAMILY % ((self.place.name,) * 2))
            pids = self.pids(2)
            lab.send_signal(number)
            lab.wait()
            self.gone(pids)

    def test_of_a_check_that_is_killed(self):
        lab = self.script("from skualab.checks import check\ncheck._run(['sh', '-c', 'trap \"echo asked >%s/asked; exit\" TERM; "
                          "echo $$ >>%s/pids; while :; do sleep 0.1; done'], '/dev/null', 60, 'x')"
                          % ((self.place.name,) * 2))
        pids = self.pids(1)
        lab.kill()
        lab.wait()
        self.gone(pids)
        self.assertTrue(os.path.exists(self.place.name + '/asked'))

    def start(self, *command, **how):
        with mock.patch.object(program.chroot, 'words', lambda command, **_: list(command)):
            return program.Process(command, subprocess.DEVNULL, **how)

    def test_its_status_and_its_end(self):
        for script, status in (('exit 3', 3), ('kill -9 $$', -9), ('kill -6 $$', -6), ('kill -13 $$', -13)):
            one = self.start('sh', '-c', script)
            until(lambda: one.ended() is not None)
            self.assertEqual((one.ended(), one.stop()), (status, status))
        self.assertEqual(self.start('sleep', '77').stop(grace=0), -9)

    @unittest.skipIf(os.geteuid() or not os.path.exists('/proc/self/autogroup'), 'for root, with autogroups')
    def test_its_session_goes_first(self):
        one = self.start('sleep', '77')
        one.go_first()
        with open('/proc/%d/autogroup' % one.popen.pid) as file:
            self.assertRegex(file.read(), ' nice -10$')
        one.stop(grace=0)
        one.go_first()      # it has ended, and that is no matter

    def test_others_learn_of_the_end_of_its_pipes(self):
        ours, theirs = os.pipe()
        one = self.start('sh', '-c', 'exec %d>&-; sleep 77' % theirs, fds=[theirs])
        os.close(theirs)
        self.assertEqual(os.read(ours, 1), b'')
        os.close(ours)
        one.stop(grace=0)

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_qemu_leaves_no_setuid_file_and_no_device(self):
        for script, refused in (('chmod u+s f', True), ('chmod 6755 f', True), ('chmod 1755 f', False), ('cat f', False),
                                ('mknod d c 1 3', True), ('mknod b b 1 3', True), ('mkfifo p', False),
                                ('mkdir e', False), ('%s -c "import os; os.open(\'o\', os.O_CREAT | os.O_RDWR, 0o4755)"'
                                                     % sys.executable, True),
                                ('%s -c "import os; os.mknod(\'n\', 0o104755)"' % sys.executable, True)):
            with open(self.place.name + '/f', 'w'):
                pass
            one = self.start('sh', '-c', 'cd %s && %s' % (self.place.name, script), flags=['no-setuid'])
            until(lambda: one.ended() is not None)
            self.assertEqual(one.stop() != 0, refused, script)


class TwoLabs(unittest.TestCase):
    """Who waits for another lab says so, once."""

    def test_a_lock(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, 'there', 'lock')
            with lock.held(path, 'is here'):
                other = subprocess.Popen([sys.executable, '-B', '-c', 'import sys; sys.path.insert(0, %r)\n'
                                          'from skualab.host import lock\n'
                                          'with lock.held(%r, "makes x"): print("done")' % (LAB, path)],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(other.stderr.readline(), 'lab: waiting for another process, which makes x\n')
                self.assertIsNone(other.poll())
            self.assertEqual(other.communicate(timeout=60), ('done\n', ''))

    def test_each_is_locked(self):
        """The apt directory, a stage of make check and what it writes to with others, a stage of the build."""
        held = []

        @contextlib.contextmanager
        def note(path, what):
            held.append(os.path.basename(path))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            yield
        with tempfile.TemporaryDirectory() as place, mock.patch.object(check, 'held', note), \
                mock.patch.object(stage, 'held', note), mock.patch.object(apt, 'held', note), \
                mock.patch.object(apt.settings, 'offline', True), mock.patch.object(apt.paths, 'APT', place + '/apt'), \
                mock.patch.multiple(stage.paths, STAMPS=place, LOGS=place), mock.patch.object(say, 'line'):
            one = check.Check('c', 20, [], ['true'], [stage.Stage('s', lambda log: None, lambda: [], place, 1)], writes='w')
            one.directory = place + '/c'
            one.run()
            with self.assertRaises(say.LabError), open(os.devnull, 'w') as log, \
                    mock.patch.object(apt, 'LISTS', place + '/lists'):
                apt.update(log)
        self.assertEqual(held, ['s.lock', 'c.lock', 'writes-w.lock', 'apt.lock'])


class Sockets(unittest.TestCase):
    """Directories for sockets are not left in /tmp by a lab that was killed."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        patch = mock.patch.object(sockets, 'WHERE', self.place)
        patch.start()
        self.addCleanup(patch.stop)

    def lab(self):
        """(a lab that has such a directory, the directory)"""
        lab = subprocess.Popen([sys.executable, '-B', '-c', 'import sys, time; sys.path.insert(0, %r)\n'
                                'from skualab.host import sockets\nsockets.WHERE = %r\n'
                                'path = sockets.new_place()\nopen(path + "/control", "w").close()\n'
                                'print(path, flush=True)\ntime.sleep(60)' % (LAB, self.place)],
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (lab.kill(), lab.wait(), lab.stdout.close()))
        return lab, lab.stdout.readline().strip()

    def test_that_of_a_lab_that_was_killed_goes_and_others_stay(self):
        (killed, left), (_, used) = self.lab(), self.lab()
        killed.kill()
        killed.wait()
        os.mkdir(self.place + '/skua-others')
        mine = sockets.new_place()
        self.assertFalse(os.path.exists(left))
        self.assertTrue(os.path.exists(used + '/control'))
        self.assertTrue(os.path.exists(self.place + '/skua-others'))
        sockets.prune()
        self.assertTrue(os.path.exists(mine))
        sockets.remove_place(mine)
        self.assertFalse(os.path.exists(mine))

    def test_one_that_another_lab_removes_before_it_is_locked(self):
        make, made = tempfile.mkdtemp, []

        def removed(**how):
            made.append(make(**how))
            if len(made) == 1:
                os.rmdir(made[0])
            return made[-1]
        with mock.patch.object(sockets.tempfile, 'mkdtemp', removed):
            self.assertEqual(sockets.new_place(), made[1])
        sockets.remove_place(made[1])
