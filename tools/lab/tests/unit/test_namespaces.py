"""The lab of a user who is not root."""

import os
import pwd
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from skualab.command import parser, verbs
from skualab.host import namespaces, paths, userns
from skualab.host.say import LabError
from skualab.roots import chroot, root
from testing import LAB


class Binds(unittest.TestCase):
    def places(self, cwd, *words):
        """What a verb of the lab binds into the root, besides what is the lab's own."""
        args = parser.parse(list(words))
        with mock.patch.multiple(paths, REPO='/repo', BUILD='/built'), mock.patch.object(root, 'STAGE'), \
                mock.patch.object(chroot.namespaces, 'unshare', return_value=[]), \
                mock.patch.object(os, 'getcwd', return_value=cwd), mock.patch.object(chroot.subprocess, 'run') as run:
            args.function(args)
        words = run.call_args[0][0]
        return words[words.index('chroot') + 2:words.index('--')][2:]

    def test_a_working_directory_does_not_cover_what_the_root_needs(self):
        for words in (('exec', '--', 'true'), ('skuactl', 'devices')):
            for cwd in ('/', '/usr', '/etc', '/bin', '/lib', '/lib64', '/dev', '/proc', '/sys', '/run', '/var',
                        '/usr/bin', '/usr/sbin', '/usr/lib', '/usr/lib64', '/usr/include', '/usr/share',
                        '/usr/lib/mips-linux-gnu', '/repo/tools'):
                self.assertEqual(self.places(cwd, *words), [], cwd)
            for cwd in ('/tmp', '/home', '/home/u/usr', '/root', '/srv/etc', '/usr/src', '/usr/src/linux', '/usr/local',
                        '/library', '/etc/x', '/usr/share/doc'):
                self.assertEqual(self.places(cwd, *words), [cwd])

    def test_the_socket_of_skuactl_is_reached(self):
        """Wherever the option stands, and however getopt lets one write it."""
        for words in (['--socket', '/s/x', 'devices'], ['--', '--socket', '/s/x', 'devices'],
                      ['devices', '--socket', '/s/x'], ['devices', '--socket=/s/x'], ['--', '-s', '/s/x', 'qps'],
                      ['qps', '-j', '-s/s/x'], ['--', '-js', '/s/x', 'qps'],
                      ['--', '-w', '-', '--sock', '/s/x', 'capture', 'skua0']):
            with mock.patch.object(verbs.os.path, 'isdir', return_value=True):
                self.assertEqual(self.places('/work', 'skuactl', *words), ['/s', '/work'], words)
        for words in (['capture', 'skua0', '-ws'], ['--', 'devices', '--', '-s', '/s/x']):
            self.assertEqual(self.places('/work', 'skuactl', *words), ['/work'], words)

    def test_the_root_is_not_covered(self):
        """Who wants / is told so, and does not get that of the root instead."""
        with self.assertRaisesRegex(LabError, '^/ of this host cannot be bound'):
            chroot.words(['true'], binds=['/some/where', '/'])

    def test_a_share_does_not_cover_the_root(self):
        for words, path in ((['run', '--share', '/', '--', 'true'], '/'), (['up', '--share', '/'], '/'),
                            (['run', '--share', '/usr/../etc/', '--', 'true'], '/etc')):
            with self.assertRaisesRegex(LabError, '^--share: the lab has its own %s' % path):
                verbs.scene_options(parser.parse(words))
        self.assertEqual(verbs.scene_options(parser.parse(['run', '--share', '/tmp', '--', 'true'])).share, '/tmp')


class WithoutRoot(unittest.TestCase):
    def test_a_root_is_removed_by_who_owns_it(self):
        for user, plain in ((0, True), (1000, False)):
            with mock.patch.object(chroot.os, 'geteuid', return_value=user), \
                    mock.patch.object(namespaces, '_maps', return_value=True), mock.patch.object(chroot.subprocess, 'run') as run:
                chroot.remove('/build/root', None)
            words = run.call_args[0][0]
            self.assertEqual(words[-4:], ['rm', '-rf', '--one-file-system', '/build/root'])
            self.assertEqual(len(words) == 4, plain)
            self.assertEqual('--map-auto' in words, not plain)

    def test_an_unshare_that_maps_no_subordinate_ids(self):
        with mock.patch.object(namespaces.os, 'geteuid', return_value=1000), \
                mock.patch.object(namespaces.subprocess, 'run', return_value=mock.Mock(stdout=' --map-root-user\n')):
            namespaces._maps.cache_clear()
            words = namespaces.unshare()
        namespaces._maps.cache_clear()
        self.assertIn(os.path.join(LAB, 'skualab/host/userns.py'), words)
        self.assertNotIn('--map-auto', words)

    @unittest.skipIf(os.geteuid(), 'for root')
    def test_ids_are_mapped(self):
        with tempfile.TemporaryDirectory() as place:
            for tool, name in (('newuidmap', 'uid_map'), ('newgidmap', 'gid_map')):
                with open(os.path.join(place, tool), 'w') as file:
                    file.write('#!/bin/sh\nto=/proc/$1/%s\nshift\nprintf "%%s %%s %%s\\n" "$@" >$to\n' % name)
                os.chmod(file.name, 0o755)
            done = subprocess.run([sys.executable, '-B', '-c', 'import sys; sys.path.insert(0, %r); '
                                   'from skualab.host import userns; userns.ranges = '
                                   'lambda path: [(100000, 65536), (300000, 10)]; sys.argv = ["x", "sh", "-c", "id -u; '
                                   'cat /proc/self/uid_map; cat /proc/self/gid_map"]; sys.exit(userns.main())' % LAB],
                                  stdout=subprocess.PIPE, text=True, timeout=60,
                                  env={**os.environ, 'PATH': place + ':' + os.environ['PATH']})
            rows = ['0 0 1', '1 100000 65536', '65537 300000 10']
            self.assertEqual([' '.join(text.split()) for text in done.stdout.splitlines()], ['0', *rows, *rows])
            self.assertEqual(done.returncode, 0)

    def test_ranges(self):
        with tempfile.NamedTemporaryFile('w') as file:
            file.write('# none\n%d:5:6\nnobody-else:1:2\n%s:7:8\n' % (os.getuid(), pwd.getpwuid(os.getuid()).pw_name))
            file.flush()
            self.assertEqual(userns.ranges(file.name), [(5, 6), (7, 8)])
