"""Where the lab and what it is given lie."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from skualab.host import say
from skualab.machines import accelerator, guest
from skualab.products import kernels
from testing import LAB


class Paths(unittest.TestCase):
    """Where the lab and what it is given lie."""

    def test_a_relative_build_directory(self):
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run([sys.executable, '-B', '-c', 'import os, sys; sys.path.insert(0, %r); '
                                   'from skualab.host import paths; '
                                   'print(paths.BUILD, os.environ["SKUA_BUILD"])' % LAB], cwd=place, text=True,
                                  stdout=subprocess.PIPE, env={**os.environ, 'SKUA_BUILD': 'there'}, timeout=60)
            self.assertEqual(done.stdout.split(), [os.path.realpath(place) + '/there'] * 2)

    def test_characters_that_make_cannot_do_with(self):
        for name, wrong in (('a b', "(' ')"), ('a:b', "(':')"), ('a,b-c_d~1+', None)):
            with mock.patch.object(accelerator.paths, 'BUILD', '/x/' + name):
                if wrong:
                    with self.assertRaises(say.LabError) as caught:
                        accelerator.paths.usable()
                    self.assertIn(wrong, str(caught.exception))
                else:
                    accelerator.paths.usable()
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run([os.path.join(LAB, 'lab'), 'doctor'], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, 'SKUA_BUILD': place + '/a b'})
            self.assertEqual((done.returncode, done.stderr.count('\n')), (125, 1), done.stderr)
            self.assertIn('SKUA_BUILD', done.stderr)

    def test_make_clean_removes_nothing_beside_the_build_directory(self):
        """Whatever the characters of the paths are: a blank must not make two paths of one."""
        for build in (None, 'x y', '/x y', 'x;y', '/x$y', 'x*'):
            with self.subTest(build), tempfile.TemporaryDirectory() as place:
                tree = place + '/a b'
                where = os.path.join(tree, 'build') if build is None else os.path.join(tree, build.lstrip('/'))
                others = (place + '/a', tree + '/x', tree + '/y', tree + '/xz/bench')
                for path in (*others, *(where + name for name in ('/bench', '/skuad-check', '/root', '/apt'))):
                    os.makedirs(path)
                shutil.copy(os.path.join(LAB, '../../Makefile'), tree)
                environment = {name: value for name, value in os.environ.items() if name != 'SKUA_BUILD'}
                if build:
                    environment['SKUA_BUILD'] = where if build[0] == '/' else build
                subprocess.run(['make', '-C', tree, 'clean'], env=environment, stdout=subprocess.DEVNULL, check=True,
                               timeout=60)
                self.assertEqual(sorted(os.listdir(where)), ['apt', 'root'])
                for path in others:
                    self.assertTrue(os.path.isdir(path), path)

    def test_a_comma_in_an_option_of_qemus(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(guest.program, 'Process') as process_, \
                mock.patch.object(guest.accelerator, 'choose', return_value=('tcg', 'x')):
            directory = place + '/a, b'
            os.mkdir(directory)
            one = guest.Guest(directory, '/k,1', mock.Mock(), shares=['/s, 1'])
            words = process_.call_args[0][0]
            process_.return_value.ended.return_value = 1
            with open(directory + '/qemu.log', 'w') as file:
                file.write('warning: x\nqemu: no memory\n')
            # What QEMU said last is in what the person gets to see.
            self.assertEqual(one.why(), 'QEMU ended with status 1: qemu: no memory')
            one.stop()
        self.assertIn('file,id=console,path=%s/a,, b/console.log' % place, words)
        self.assertIn('file=/k,,1/modules.erofs,id=disk1,if=none,format=raw,readonly=on,cache=unsafe', words)
        self.assertIn('local,path=/s,, 1,mount_tag=share0,security_model=none,multidevs=remap', words)
        self.assertIn('/k,1/vmlinux', words)

    def test_old_kernels_go(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.multiple(
                kernels.paths, KERNELS=place, STAMPS=place + '/stamps', LOGS=place):
            os.mkdir(place + '/stamps')
            for number in range(8):
                path = '%s/custom-%d' % (place, number)
                os.mkdir(path)
                with open('%s/stamps/kernel-custom-%d' % (place, number), 'w'):
                    pass
                age = time.time() - (1 if number == 0 else 100000 + number)
                os.utime(path, (age, age))
            os.mkdir(place + '/debian')
            kernels._prune(place + '/custom-7')
            self.assertEqual(sorted(os.listdir(place)), [*('custom-%d' % number for number in (0, 1, 2, 3, 7)),
                                                         'debian', 'stamps'])
            self.assertNotIn('kernel-custom-6', os.listdir(place + '/stamps'))
