"""A machine that lacks what the lab needs."""

import os
import shutil
import subprocess
import tempfile
import unittest

from skualab.target.distro import DISTRO
from testing import LAB


class Bare(unittest.TestCase):
    """A machine that has git, make and python3: the lab brings the rest, or says in one line what does."""

    HAS = ('python3', 'env', 'sh', 'dirname', 'touch', 'chmod', 'unshare', 'mount', 'dpkg-query', 'chroot')
    # Of the machine's, which may lack a keyring as well.
    INSTALLED = 'apt-get install -y --no-install-recommends .*mmdebstrap'

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        os.chmod(self.place.name, 0o755)
        self.bin = os.path.join(self.place.name, 'bin')
        os.mkdir(self.bin)
        for name in self.HAS:
            # Not one of somebody's home, which others may not read.
            os.symlink(shutil.which(name, path='/usr/bin:/bin:/usr/sbin:/sbin'), os.path.join(self.bin, name))
        self.build = os.path.join(self.place.name, 'build')
        os.mkdir(self.build)
        os.chmod(self.build, 0o777)

    def program(self, name, script):
        with open(os.path.join(self.bin, name), 'w') as file:
            file.write('#!/bin/sh\n%s\n' % script)
        os.chmod(file.name, 0o755)

    def lab(self, *words, **user):
        done = subprocess.run([os.path.join(LAB, 'lab'), *words], capture_output=True, text=True, timeout=60, env={
            'PATH': self.bin, 'SKUA_BUILD': self.build, 'SKUA_MIRROR': 'http://me:secret@mirror.invalid/debian'}, **user)
        self.assertNotIn('Traceback', done.stderr)
        self.assertNotIn('secret', done.stderr)
        return done.returncode, done.stderr.splitlines()

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_root_installs_and_says_so(self):
        self.program('apt-get', 'echo "$*" >>"$0".said; case $* in *mmdebstrap*) touch "$(dirname "$0")/mmdebstrap"; '
                     'chmod +x "$(dirname "$0")/mmdebstrap" ;; *-o*Dir::State*) echo "E: Could not connect to '
                     'http://me:secret@mirror.invalid:80"; exit 100 ;; esac')
        status, said = self.lab('demo')
        self.assertEqual(status, 125)
        self.assertRegex(said[0], '^lab: installing on this host: .*mmdebstrap')
        with open(self.bin + '/apt-get.said') as file:
            self.assertRegex(file.read(), 'update\n.*install -y --no-install-recommends .*mmdebstrap')
        # And the mirror, which is dead, is named in one line that says what to do.
        if os.path.exists(DISTRO.keyring):
            self.assertIn('cannot be reached', said[-1])
            self.assertIn('SKUA_MIRROR', said[-1])
        self.assertEqual(sum('lab failure' in text for text in said), 1, said)

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_what_apt_cannot_install(self):
        self.program('apt-get', 'echo E: no such package; exit 100')
        status, said = self.lab('demo')
        self.assertEqual((status, len(said)), (125, 2), said)
        self.assertRegex(said[1], 'did not install.*: apt-get update && ' + self.INSTALLED)

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_a_user_gets_the_command(self):
        self.program('apt-get', 'exit 1')
        for sudo, command in ((None, 'as root: apt-get update && '), ('exit 1', 'sudo apt-get update && sudo ')):
            if sudo:
                self.program('sudo', sudo)
            status, said = self.lab('demo', user=65534, group=65534, extra_groups=[])
            self.assertEqual((status, len(said)), (125, 1), said)
            self.assertRegex(said[0], command + self.INSTALLED)

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_a_user_whom_sudo_asks_nothing(self):
        self.program('apt-get', 'exit 1')
        self.program('sudo', 'echo "$*" >>%s/said' % self.build)
        status, said = self.lab('demo', user=65534, group=65534, extra_groups=[])
        self.assertEqual((status, len(said)), (125, 2), said)
        with open(self.build + '/said') as file:
            self.assertRegex(file.read(), '-n true\n-n env DEBIAN_FRONTEND=noninteractive apt-get .*update\n.*mmdebstrap')

    def test_offline_installs_nothing(self):
        self.program('apt-get', 'touch "$0".ran')
        status, said = self.lab('--offline', 'demo')
        self.assertEqual((status, len(said)), (125, 1), said)
        self.assertIn('mmdebstrap', said[0])
        self.assertFalse(os.path.exists(self.bin + '/apt-get.ran'))

    def test_no_apt(self):
        status, said = self.lab('demo')
        self.assertEqual((status, len(said)), (125, 1), said)
        self.assertIn('no apt-get', said[0])

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_no_right_to_mount(self):
        os.unlink(self.bin + '/unshare')
        self.program('unshare', 'echo unshare: Operation not permitted >&2; exit 1')
        self.program('mmdebstrap', 'exit 1')
        self.program('apt-get', 'exit 0')
        status, said = self.lab('demo')
        self.assertEqual(status, 125)
        self.assertIn('CAP_SYS_ADMIN', said[-1])
