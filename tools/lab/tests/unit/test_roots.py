"""What is fetched, and kept."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from unittest import mock

from skualab.command import doctor
from skualab.host import say
from skualab.roots import apt, root
from skualab.target.arch import ARCH
from testing import LAB

SUFFIX = '_%s.deb' % ARCH.debian


class Apt(unittest.TestCase):
    """Lists and packages under build/apt."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        where = os.path.join(self.place.name, 'apt')
        self.archive = os.path.join(self.place.name, 'archive')
        text = 'deb [trusted=yes] copy:%s ./\n' % self.archive
        for patch in (mock.patch.object(apt.paths, 'APT', where), mock.patch.object(apt, 'sources', lambda: text),
                      mock.patch.multiple(apt, LISTS=where + '/lists', ARCHIVES=where + '/archives',
                                          SOURCES=where + '/sources.list', UPDATED=where + '/updated'),
                      mock.patch.object(apt.say, 'line')):
            patch.start()
            self.addCleanup(patch.stop)
        self.log = open(os.path.join(self.place.name, 'log'), 'w')
        self.addCleanup(self.log.close)

    def publish(self, *packages):
        os.makedirs(self.archive, exist_ok=True)
        with open(self.archive + '/Packages', 'w') as index:
            for name, version, more in packages:
                data = ('%s %s\n' % (name, version)).encode()
                file = '%s_%s%s' % (name, version, SUFFIX)
                with open(os.path.join(self.archive, file), 'wb') as package:
                    package.write(data)
                index.write('Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: x\nFilename: ./%s\nSize: %d\n'
                            'SHA256: %s\n%s\n' % (name, version, ARCH.debian, file, len(data), hashlib.sha256(data).hexdigest(), more))

    def archives(self):
        return sorted(name[:-len(SUFFIX)] for name in os.listdir(apt.ARCHIVES) if name.endswith(SUFFIX))

    def test_an_update_that_failed_or_was_ended_is_not_fresh(self):
        for error in (subprocess.CalledProcessError(100, 'apt-get'), KeyboardInterrupt(), None):
            with mock.patch.object(apt, 'run', side_effect=error) as run, \
                    contextlib.suppress(subprocess.CalledProcessError, KeyboardInterrupt):
                apt.update(self.log)
            self.assertEqual(run.call_count, 1, error)
        with mock.patch.object(apt, 'run') as run:
            apt.update(self.log)
        self.assertEqual(run.call_count, 0)

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_a_list_that_is_not_there_is_a_failure(self):
        with self.assertRaises(subprocess.CalledProcessError):
            apt.update(self.log)

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_packages_are_kept_as_they_come(self):
        self.publish(('apt', '1', 'Essential: yes\n'), ('a', '1', 'Depends: b, lost\n'), ('b', '1', ''), ('lost', '1', ''),
                     ('unwanted', '1', ''))
        os.unlink(self.archive + '/lost_1' + SUFFIX)
        apt.update(self.log)
        with self.assertRaises(subprocess.CalledProcessError):
            apt.fetch(['a'], self.log)
        self.assertEqual(self.archives(), ['a_1', 'apt_1', 'b_1'])
        self.publish(('apt', '1', 'Essential: yes\n'), ('a', '1', 'Depends: b, lost\n'), ('b', '1', ''), ('lost', '1', ''))
        apt.fetch(['a'], self.log)
        self.assertIn('lost_1', self.archives())
        self.assertEqual(apt.say.line.call_args[0], ('packages: 1 are fetched, 0 MB',))

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_old_packages_go(self):
        for version in '12':
            self.publish(('apt', version, 'Essential: yes\n'))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(apt.UPDATED)
            apt.update(self.log)
            apt.fetch([], self.log)
        self.assertEqual(len(self.archives()), 2)
        apt.prune(self.log)
        self.assertEqual(self.archives(), ['apt_2'])

    def test_offline_asks_for_no_mirror(self):
        os.makedirs(apt.LISTS)
        with open(apt.LISTS + '/x_Packages', 'w'):
            pass
        with mock.patch.object(root.mirror, 'uri', side_effect=say.LabError('no mirror')), \
                mock.patch.object(root.needs, 'ready'), mock.patch.object(root.apt, 'fetch'), \
                mock.patch.object(root, '_kernels', return_value={}), mock.patch.object(apt.settings, 'offline', True):
            root._before(self.log)
            self.assertEqual(list(doctor._mirror()), [])

    def test_how_fast_it_comes(self):
        os.makedirs(apt.ARCHIVES)
        came = apt.Arrival()
        with open(apt.ARCHIVES + '/a', 'wb') as file:
            file.write(b'a' * 3000000)
        self.assertRegex(came(), r'3 MB came, [\d.]+ MB/s')


class Cache(unittest.TestCase):
    """What was fetched, from one build directory to another; what is no such file is one line."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def path(self, *names):
        return os.path.join(self.place.name, *names)

    def lab(self, build, *words):
        done = subprocess.run([os.path.join(LAB, 'lab'), *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, 'SKUA_BUILD': self.path(build)})
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        return done.returncode, done.stderr.strip()

    def test_to_another_place(self):
        os.makedirs(self.path('here/apt/archives'))
        with open(self.path('here/apt/archives/a.deb'), 'w') as file:
            file.write('a')
        with open(self.path('here/apt/sources.list'), 'w') as file:
            file.write('deb http://me:secret@host/debian x main\n')
        self.assertEqual(self.lab('here', 'cache', 'export', self.path('kept'))[0], 0)
        self.assertEqual(self.lab('there', 'cache', 'import', self.path('kept')), (0, 'lab: 1 packages are kept'))
        with open(self.path('there/apt/archives/a.deb')) as file:
            self.assertEqual(file.read(), 'a')
        # The mirror's password is not for others.
        with open(self.path('there/apt/sources.list')) as file:
            self.assertEqual(file.read(), 'deb http://host/debian x main\n')

    def test_what_cannot_be(self):
        os.makedirs(self.path('here/apt'))
        with open(self.path('junk'), 'w') as file:
            file.write('junk\n' * 1000)
        with tarfile.open(self.path('strange'), 'w') as file:
            file.add(self.path('junk'), 'apt/../../junk')
        for words, part in ((('export', self.path('not', 'there')), 'No such file'),
                            (('import', self.path('nothing')), 'No such file'),
                            (('import', self.path('junk')), 'could not be opened'),
                            (('import', self.path('strange')), 'not a cache of the lab')):
            status, said = self.lab('here', 'cache', *words)
            self.assertEqual(status, 125)
            self.assertIn(part, said)
        self.assertIn('nothing is kept yet', self.lab('empty', 'cache', 'export', self.path('x'))[1])
        self.assertFalse(os.path.exists(self.path('there')))
