"""What is fetched, and kept."""

import base64
import contextlib
import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
from unittest import mock

from skualab.command import doctor
from skualab.host import paths, say
from skualab.products import kernels, sources
from skualab.roots import apt, mirror, root
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO
from testing import LAB, script

SUFFIX = '_%s.deb' % ARCH.debian
SOURCES = mirror.sources
# A kernel's release, and packages: two that are its own, and two that only look so.
RELEASE = DISTRO.kernel + '.9+deb13-' + ARCH.debian
KERNEL = [(name, '1', '') for name in (DISTRO.image_package + RELEASE, 'linux-modules-' + RELEASE,
                                       DISTRO.image_package + RELEASE + '-dbg', 'linux-binary-%s.9' % DISTRO.kernel)]


class WithArchive(unittest.TestCase):
    """A test with an archive of packages, and a directory in place of build/apt."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        where = os.path.join(self.place.name, 'apt')
        self.archive = os.path.join(self.place.name, 'archive')
        self.sources = 'deb [trusted=yes] copy:%s ./\n' % self.archive
        for patch in (mock.patch.object(apt.paths, 'APT', where),
                      mock.patch.object(mirror, 'sources', lambda: self.sources),
                      mock.patch.dict(os.environ, {'SKUA_MIRROR': 'http://mirror.invalid/debian'}),
                      mock.patch.multiple(apt, LISTS=where + '/lists', ARCHIVES=where + '/archives',
                                          SOURCES=where + '/sources.list', UPDATED=where + '/updated',
                                          LOGINS=where + '/auth.conf.d'),
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


class Apt(WithArchive):
    """Lists and packages under build/apt."""

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
        self.assertEqual(apt.say.line.call_args[0], ('packages to download: 1, 0 MB',))

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

    def kernel(self):
        """The names of the files that a kernel's stage makes use of."""
        with mock.patch.object(kernels.root, 'releases', return_value={DISTRO.kernel: RELEASE}):
            return [os.path.basename(path) for path in kernels._fetch(DISTRO.kernel, self.log)]

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_kernels_come_with_their_root_and_stay(self):
        self.publish(('apt', '1', 'Essential: yes\n'), *KERNEL)
        with mock.patch.object(root.needs, 'ready'), mock.patch.object(root, '_packages', return_value=[]), \
                mock.patch.object(root, '_kernels', return_value={DISTRO.kernel: RELEASE}):
            root._before(self.log)
        mine = sorted('%s_%s%s' % (name, version, SUFFIX) for name, version, _ in KERNEL[:2])
        self.assertEqual(self.kernel(), mine)
        # The mirror moves on, and the next day its lists are fetched again.
        self.publish(('apt', '1', 'Essential: yes\n'))
        os.unlink(apt.UPDATED)
        apt.update(self.log)
        self.assertEqual(self.kernel(), mine)

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_a_kernel_that_neither_is_here_nor_there(self):
        self.publish(('apt', '1', 'Essential: yes\n'))
        with self.assertRaisesRegex(say.LabError, 'no longer has the kernel %s, .*; remove the file .*/root, [^\n]*$'
                                    % re.escape(RELEASE)):
            self.kernel()
        self.publish(('apt', '1', 'Essential: yes\n'), *KERNEL)
        os.unlink(apt.UPDATED)
        self.assertEqual(len(self.kernel()), 2)

    @unittest.skipUnless(shutil.which('dpkg-deb'), 'for Debian')
    def test_checkers_may_be_the_first_of_the_sources(self):
        tree, package = os.path.join(self.place.name, 'tree'), os.path.join(self.place.name, 'p.deb')
        os.makedirs(tree + '/DEBIAN')
        with open(tree + '/DEBIAN/control', 'w') as file:
            file.write('Package: p\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n')
        with open(tree + '/a', 'w'):
            pass
        subprocess.run(['dpkg-deb', '-b', tree, package], stdout=self.log, check=True)
        where = os.path.join(self.place.name, 'src/checkers')
        with mock.patch.object(sources, 'CHECKERS', where), mock.patch.object(sources, '_fetch', return_value=[package]), \
                mock.patch.object(sources.chroot, 'words', lambda command, *_: command):
            sources._checkers(self.log)
        self.assertTrue(os.path.exists(where + '/a'))

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


class Asks(http.server.SimpleHTTPRequestHandler):
    """Serves to whoever has the password."""

    def do_GET(self):
        if self.headers['Authorization'] == 'Basic ' + base64.b64encode(b'me:s@cret').decode():
            return super().do_GET()
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_):
        pass


class Passwords(WithArchive):
    """The password of a mirror is where its owner alone can read it, and in nothing that is made."""

    def setUp(self):
        super().setUp()
        self.publish(('apt', '1', 'Essential: yes\n'))
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Asks, directory=self.archive))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        self.host = '127.0.0.1:%d' % server.server_address[1]
        self.sources = 'deb [trusted=yes] http://%s ./\n' % self.host

    @unittest.skipUnless(shutil.which('apt-get'), 'for Debian')
    def test_apt_logs_in_with_it(self):
        with self.assertRaises(subprocess.CalledProcessError):
            apt.update(self.log)
        with mock.patch.dict(os.environ, {'SKUA_MIRROR': 'http://me:s%40cret@' + self.host, 'http_proxy': ''}):
            apt.update(self.log)
        kept = apt.LOGINS + '/mirror.conf'
        self.assertEqual(os.stat(kept).st_mode & 0o777, 0o600)
        with open(kept) as file:
            self.assertEqual(file.read(), 'machine http://%s login me password s@cret\n' % self.host)

    def test_it_is_not_in_the_sources(self):
        for address in ('http://me:secret@host/debian', 'http://me:sec@ret@host/debian', 'http://secret@host/debian'):
            with mock.patch.dict(os.environ, {'SKUA_MIRROR': address}), \
                    mock.patch.object(mirror, 'keyring', return_value='/key'):
                self.assertIn('deb [signed-by=/key] http://host/debian %s main\n' % DISTRO.stable, SOURCES())

    def test_it_is_not_in_a_root(self):
        """Nor that of a proxy, since mmdebstrap has no need of one."""
        os.makedirs(paths.APT)
        with open(apt.SOURCES, 'w') as file:        # as an earlier lab left it
            file.write('deb http://me:secret@host/debian x main\n')
        with mock.patch.object(root.subprocess, 'run', side_effect=InterruptedError) as run, \
                mock.patch.object(root, '_kernels', return_value={}), mock.patch.object(root.chroot, 'remove'), \
                mock.patch.object(paths, 'KERNELS', self.place.name), self.assertRaises(InterruptedError):
            root._make(self.log)
        self.assertEqual(run.call_args[1]['input'], 'deb http://host/debian x main\n')
        self.assertFalse([word for word in run.call_args[0][0] if word.startswith('--aptopt')])

    def test_it_is_not_in_the_command_lines_of_a_bare_machine(self):
        """Nor that of a proxy. Those who may, find both in the machine."""
        bare, top = script('tests/test-bare'), os.path.join(self.place.name, 'machine')
        proxy = 'Acquire::http::Proxy "http://me:secret@proxy";'
        with mock.patch.object(bare.subprocess, 'run') as run, mock.patch.object(bare, 'OWN', top), \
                mock.patch.object(bare, 'host_apt', return_value=[proxy]), \
                mock.patch.object(bare.chroot.namespaces, 'unshare', return_value=['unshare']), \
                mock.patch.dict(os.environ, {'SKUA_MIRROR': 'http://me:secret@host',
                                             'http_proxy': 'http://me:secret@proxy'}):
            bare.make_machine()
            bare.make_run()
        machine, demo = run.call_args_list
        self.assertNotIn('secret', str([machine[0], demo[0]]))
        os.makedirs(top + '/etc/apt/apt.conf.d')
        hook, = (word.partition('=')[2] for word in machine[0][0] if word.startswith('--setup-hook='))
        subprocess.run(['sh', '-c', hook, 'exec', top], env=machine[1]['env'], check=True)
        for name, text in (('auth.conf.d/mirror.conf', 'machine http://host login me password secret'),
                           ('apt.conf.d/host', proxy)):
            path = os.path.join(top, 'etc/apt', name)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            with open(path) as file:
                self.assertEqual(file.read().strip(), text)
        inner = demo[0][0][demo[0][0].index('eval "$(cat)" && exec make run </dev/null')].replace('make run', 'env')
        told = subprocess.run(['sh', '-c', inner], input=demo[1]['input'], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        for line in 'SKUA_MIRROR=http://me:secret@host', 'http_proxy=http://me:secret@proxy':
            self.assertIn(line, told.splitlines())

    def test_one_that_auth_conf_cannot_hold(self):
        with mock.patch.dict(os.environ, {'SKUA_MIRROR': 'http://me:a%20b@host/debian'}), \
                self.assertRaises(say.LabError):
            mirror.login()


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
        os.mkdir(self.path('here/apt/auth.conf.d'))
        os.symlink('/etc/hostname', self.path('here/apt/auth.conf.d/host-x.conf'))
        with open(self.path('here/apt/auth.conf.d/mirror.conf'), 'w') as file:
            file.write('machine http://host/debian login me password secret\n')
        self.assertEqual(self.lab('here', 'cache', 'export', self.path('kept'))[0], 0)
        self.assertEqual(self.lab('there', 'cache', 'import', self.path('kept')), (0, 'lab: packages that can be used offline: 1'))
        with open(self.path('there/apt/archives/a.deb')) as file:
            self.assertEqual(file.read(), 'a')
        # The mirror's password is not for others.
        with open(self.path('there/apt/sources.list')) as file:
            self.assertEqual(file.read(), 'deb http://host/debian x main\n')
        self.assertFalse(os.path.exists(self.path('there/apt/auth.conf.d')))

    def test_what_cannot_be(self):
        os.makedirs(self.path('here/apt'))
        with open(self.path('junk'), 'w') as file:
            file.write('junk\n' * 1000)
        with tarfile.open(self.path('strange'), 'w') as file:
            file.add(self.path('junk'), 'apt/../../junk')
        for words, part in ((('export', self.path('not', 'there')), 'No such file'),
                            (('import', self.path('nothing')), 'No such file'),
                            (('import', self.path('junk')), 'could not be opened'),
                            (('import', self.path('strange')), 'no file of `lab cache export`')):
            status, said = self.lab('here', 'cache', *words)
            self.assertEqual(status, 125)
            self.assertIn(part, said)
        self.assertIn('no package to export', self.lab('empty', 'cache', 'export', self.path('x'))[1])
        self.assertFalse(os.path.exists(self.path('there')))
