"""Stages of the build."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from skualab.host import paths, say
from skualab.products import images, kernels, provider, sources, stages
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
                    provider._fresh_tree(None)
                return os.path.exists(tree + '/compiled')
            os.mkdir(place + '/source')
            self.assertFalse(fresh('here'))
            with open(place + '/here/compiled', 'w'):
                pass
            self.assertTrue(fresh('here'))
            shutil.copytree(place + '/here', place + '/there')
            self.assertFalse(fresh('there'))

    def test_a_provider_brings_the_source_that_it_is_built_in(self):
        for role, tail in sources.TAIL.items():
            self.assertEqual(set(stages.GROUPS['provider' + tail]),
                             {one.name for one in provider.stages(role)})
