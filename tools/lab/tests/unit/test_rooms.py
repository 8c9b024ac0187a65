"""The rooms of skualab: each uses those above it, and none below."""

import ast
import glob
import os
import unittest

import skualab
from testing import LAB

HOME = os.path.join(LAB, 'skualab')


def imported(text):
    """The modules of a source, those that functions import, too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield '.' * node.level + (node.module or '')


def backwards(room, text):
    """Imports of a source in a room that do not lead to the room itself or to one above it."""
    allowed = skualab.ROOMS[:skualab.ROOMS.index(room) + 1]
    return [name for name in imported(text)
            if name.startswith(('.', 'skualab')) and name.split('.')[1:2] not in [[one] for one in allowed]]


class Rooms(unittest.TestCase):
    def test_they_are_those_that_are_listed(self):
        found = [name for name in os.listdir(HOME) if os.path.isdir(os.path.join(HOME, name)) and name != '__pycache__']
        self.assertEqual(sorted(found), sorted(skualab.ROOMS))
        self.assertEqual([name for name in os.listdir(HOME) if name.endswith('.py')], ['__init__.py'])

    def test_imports_run_one_way(self):
        for room in skualab.ROOMS:
            files = glob.glob(os.path.join(HOME, room, '*.py'))
            self.assertTrue(files, room)
            for path in files:
                with self.subTest(os.path.relpath(path, HOME)), open(path) as file:
                    self.assertEqual(backwards(room, file.read()), [])

    def test_one_that_runs_back_is_seen(self):
        for text in ('from skualab.runs import scene', 'def f():\n    import skualab.checks.check', 'import skualab',
                     'from . import guest', 'from skualab import runs', 'from skualab.run import x'):
            self.assertEqual(len(backwards('machines', text)), 1, text)
        self.assertEqual(backwards('machines', 'import os\nfrom skualab.machines import nics'), [])
        self.assertEqual(backwards('machines', 'from skualab.host.say import x'), [])
