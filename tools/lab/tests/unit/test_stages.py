"""Stages of the build."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from skualab.host import paths, say
from skualab.products import images, kernels, programs, provider, sources, stages
from skualab.roots import root, stage
from skualab.target.distro import DISTRO


class Stages(unittest.TestCase):
    def test_hash_follows_content_and_names(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, 'a')
            hashes = set()
            for name, content in (('a', 'x'), ('a', 'y'), ('b', 'y')):
                with open(os.path.join(place, name), 'w') as file:
                    file.write(content)
                hashes.add(stage.digest(place))
            self.assertEqual(len(hashes), 3)
            self.assertEqual(stage.digest(path), stage.digest(path))
            self.assertNotEqual(stage.digest('a', 'b'), stage.digest('ab'))

    def test_a_tree_without_some_names(self):
        with tempfile.TemporaryDirectory() as place:
            given, hashes = stage.Tree(place, 'test_*', 'harness'), []
            os.mkdir(place + '/harness')
            for name in 'a', 'test_a', 'harness/b', 'a_test_', 'c':
                with open(os.path.join(place, name), 'w') as file:
                    file.write('x')
                hashes.append(stage.digest(given))
            self.assertEqual(hashes[:3], hashes[:1] * 3)
            self.assertEqual(len(set(hashes)), 3)
            self.assertNotIn(hashes[0], hashes[3:])
            for name, has in (('a', True), ('gone/c', True), ('test_a/gone', False), ('d/harness/e', False)):
                self.assertEqual(given.has(os.path.join(place, name)), has, name)
            self.assertTrue(given.has(place))
            self.assertFalse(given.has(place + '2/a'))

    def test_a_script_that_moves_is_the_same_input(self):
        with tempfile.TemporaryDirectory() as place:
            hashes = []
            for name, text in (('a', 'x'), ('b', 'x'), ('a', 'y')):
                with open(os.path.join(place, name), 'w') as file:
                    file.write(text)
                hashes.append(stage.digest(stage.content(file.name)))
            self.assertEqual(hashes[0], hashes[1])
            self.assertNotEqual(hashes[0], hashes[2])

    def test_roots_images_and_kernels_follow_no_place(self):
        with mock.patch.object(kernels.root, 'releases', return_value={series: 'x' for series in DISTRO.series}), \
                mock.patch.object(images, 'root_stamp', return_value='x'):
            for one in (root.STAGE, images.IMAGE_STAGE, *kernels.STAGES.values()):
                self.assertTrue(one.inputs())
                self.assertFalse([text for text in one.inputs() if text.startswith(paths.REPO)], one.name)

    def test_passwords_are_not_left_in_logs(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.multiple(stage.paths, STAMPS=place, LOGS=place), \
                mock.patch.object(say, 'line'):
            for step in ('echo http://me:secret@host/debian/ a@b', 'echo http://me:secret@host/debian/; exit 3'):
                one = stage.Stage('s', lambda log: subprocess.run(['sh', '-c', step], stdout=log, check=True), lambda: [],
                                  place + '/none', 1)
                with contextlib.suppress(say.LabError):
                    one.run()
                with open(one.log) as file:
                    text = file.read()
                self.assertIn('http://***@host/debian/', text)
                self.assertNotIn('secret', text)

    def test_what_is_half_made_is_not_what_was_there_before(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.multiple(stage.paths, STAMPS=place, LOGS=place), \
                mock.patch.object(say, 'line'):
            def ended(inputs, error=None):
                one = stage.Stage('s', mock.Mock(side_effect=error), lambda: [inputs], place, 1)
                try:
                    return one.run()
                except KeyboardInterrupt:
                    return 'interrupted'
            self.assertEqual([ended('old'), ended('old'), ended('new', KeyboardInterrupt), ended('old')],
                             [True, False, 'interrupted', True])

    def test_only_what_comes_first(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.multiple(stage.paths, STAMPS=place, LOGS=place), \
                mock.patch.object(say, 'line'), mock.patch.object(stage.apt, 'Arrival'):
            make, before = mock.Mock(), mock.Mock()
            one = stage.Stage('s', make, lambda: [], place, 1, before)
            one.prepare('log')
            before.assert_called_once_with('log')
            make.assert_not_called()
            one.run()
            before.reset_mock()
            one.prepare('log')
            before.assert_not_called()

    def test_hash_is_the_same_in_a_copy_of_the_tree(self):
        hashes = []
        for _ in 'ab':
            with tempfile.TemporaryDirectory() as place, \
                    mock.patch.multiple(stage.paths, REPO=place, BUILD=os.path.join(place, 'build')):
                with open(os.path.join(place, 'a'), 'w') as file:
                    file.write('x')
                hashes.append(stage.digest(os.path.join(place, 'a'), 'OUT=%s/build/a' % place))
        self.assertEqual(*hashes)


class Build(unittest.TestCase):
    def test_a_tree_that_was_copied_is_made_anew(self):
        with tempfile.TemporaryDirectory() as place:
            def fresh(name):
                tree = os.path.join(place, name)
                with mock.patch.object(provider.sources, 'rdma_core', return_value=place + '/source'), \
                        mock.patch.object(provider, 'tree_of', return_value=tree):
                    provider._fresh_tree(DISTRO.rdma_core)
                return os.path.exists(tree + '/compiled')
            os.mkdir(place + '/source')
            self.assertFalse(fresh('here'))
            with open(place + '/here/compiled', 'w'):
                pass
            self.assertTrue(fresh('here'))
            shutil.copytree(place + '/here', place + '/there')
            self.assertFalse(fresh('there'))
            with open(place + '/there/compiled', 'w'):
                pass
            with mock.patch.dict(provider.OPTIONS, {DISTRO.rdma_core: 'others'}):
                self.assertFalse(fresh('there'))

    def test_every_stage_can_be_built_by_its_name(self):
        first, more = stages.table()
        names = {one.name for one in first + more}
        self.assertLessEqual({'checkers', *('%s-%s' % (what, series) for what in ('kernel', 'modules')
                                            for series in kernels.STAGES)}, names)
        for group in 'kernels', 'images', 'modules':
            self.assertFalse([name for name in stages.GROUPS[group] if 'debug' in name or name not in names])

    def test_a_provider_brings_the_source_that_it_is_built_in(self):
        for role, tail in sources.TAIL.items():
            self.assertEqual(set(stages.GROUPS['provider' + tail]),
                             {one.name for one in provider.stages(role)})


# Stands in for a compiler: notes what it was to make, and of which sources, and makes it.
COMPILER = '''#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2; shift ;;
	*.c) echo "$out: $1 pair.h" >"${out%.o}.d" ;;
	esac
	shift
done
echo "${out##*/}" >>"$COMPILED"
: >"$out"
'''


class Selftests(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place, self.installed = place.name, place.name + '/installed'
        for name in 'interop', 'pyverbs', 'ulp', 'linux':
            os.makedirs(os.path.join(place.name, 'selftests', name))
        shutil.copy(paths.repo('selftests/Makefile'), self.source('Makefile'))
        for name in 'packet.c', 'pair.c', 'pair.h', 'raw.c', 'hostile.c', 'test_a.c', 'test_b.c', 'test_c.sh', 'frames.py':
            self.write(self.source(name))
        self.write(place.name + '/cc', COMPILER)
        os.chmod(place.name + '/cc', 0o755)
        for patch in (mock.patch.multiple(paths, REPO=place.name, SELFTESTS=self.installed),
                      mock.patch.multiple(programs, SELFTESTS_BUILD=place.name + '/compiled', FRESH=place.name + '/fresh'),
                      mock.patch.object(programs.sources, 'linux', return_value=self.source('linux')),
                      mock.patch.object(programs.chroot, 'run', self.run_here)):
            patch.start()
            self.addCleanup(patch.stop)

    def source(self, name):
        return os.path.join(self.place, 'selftests', name)

    @staticmethod
    def write(path, text=''):
        with open(path, 'w') as file:
            file.write(text)

    def run_here(self, command, **_):
        subprocess.run(['bash', '-euo', 'pipefail', '-c', command], stdout=subprocess.DEVNULL, check=True, timeout=60,
                       env={**os.environ, 'MAKEFLAGS': 'CC=%s/cc' % self.place, 'COMPILED': self.place + '/log'})

    def built(self, root='a root'):
        """What was made to bring the tests up to date."""
        self.write(self.place + '/log')
        with mock.patch.object(programs.images, 'root_stamp', return_value=root):
            programs._selftests(None)
        with open(self.place + '/log') as file:
            return sorted(file.read().split())

    def change(self, name):
        """It is newer than all that was made, also where clocks are coarse."""
        newest = max(os.stat(entry).st_mtime_ns for entry in os.scandir(self.place + '/compiled'))
        os.utime(self.source(name), ns=(newest + 1000000, newest + 1000000))

    def test_what_changed_is_compiled_and_nothing_else(self):
        everything = sorted(['packet.o', 'pair.o', 'raw.o', 'hostile', 'hostile.o', 'test_a', 'test_a.o', 'test_b', 'test_b.o'])
        self.assertEqual(self.built(), everything)
        self.assertEqual(self.built(), [])
        self.change('test_a.c')
        self.assertEqual(self.built(), ['test_a', 'test_a.o'])
        self.change('pair.h')
        self.assertEqual(self.built(), everything)
        self.assertEqual(self.built('another root'), everything)

    def test_a_guest_keeps_what_did_not_change(self):
        def inodes():
            return {name: os.stat(os.path.join(self.installed, name)).st_ino for name in os.listdir(self.installed)}
        self.built()
        before = inodes()
        self.write(self.source('test_c.sh'), 'changed')
        self.built()
        self.assertEqual({name for name, inode in inodes().items() if before[name] != inode}, {'test_c.sh'})
        with open(self.installed + '/test_c.sh') as file:
            self.assertEqual(file.read(), 'changed')

    def test_one_that_was_removed_is_not_installed(self):
        self.built()
        self.assertLessEqual({'test_a', 'test_b', 'test_c.sh', 'interop'}, set(os.listdir(self.installed)))
        os.unlink(self.source('test_a.c'))
        os.unlink(self.source('test_c.sh'))
        self.assertEqual(self.built(), [])
        self.assertEqual(set(os.listdir(self.installed)), {'test_b', 'hostile', 'frames.py', 'interop', 'pyverbs', 'ulp'})
