"""Which files of selftests/ are inputs of a stage: all except the tests that its guests do not run, and the scripts in
Python of these.

A test is a file test_*. Those that a stage runs are found by their names in its command or its script, and what such a
test names is an input as well. So are the directories of tests that it names, as ulp/. Of programs the binary is an
input, too: it depends on the compiler and its headers.
selftests/skips is no input, since make check compares it with the log of a stage that is kept (check.py).
"""

import glob
import os
import re

from skualab.host import paths
from skualab.roots.stage import Tree

HOME = paths.repo('selftests')
NAME = re.compile(r'\btest_\w+(?:\.sh)?')
RUNS_ALL = './run_selftests.sh'     # if no test is named
PYTHON = re.compile(r'\b\w+\.py\b')
DIRECTORIES = {'interop', 'pyverbs', 'ulp'}


def text(*names):
    """Words, and what the files and trees say that are among them (absolute paths)."""
    found = []
    for name in map(str, names):
        found.append(name)
        for path in [name, *glob.glob(name + '/**', recursive=True)]:
            if os.path.isabs(path) and os.path.isfile(path):
                with open(path, errors='replace') as file:
                    found.append(file.read())
    return ' '.join(found)


def _source(test):
    return os.path.join(HOME, test if test.endswith('.sh') else test + '.c')


def _named(words):
    return {name for name in NAME.findall(words) if os.path.exists(_source(name))}


def _run(words):
    """The tests that are named, and those that these name."""
    found, new = set(), _named(words)
    while new:
        found |= new
        new = {name for test in new for name in _named(text(_source(test)))} - found
    return found


def _unused_scripts(words, tests):
    """The scripts in Python that neither the words name, nor these tests, nor what all tests may source."""
    there = os.listdir(HOME)
    sourced = [name for name in there if name.endswith('.sh') and not name.startswith('test_')]
    named = PYTHON.findall(text(words, *map(_source, tests), *(os.path.join(HOME, name) for name in sourced)))
    return sorted(name for name in there if name.endswith('.py') and name not in named)


def selftests(words=RUNS_ALL):
    """What a stage with these words reads: the directory without the tests that it does not run, and programs."""
    there = {name.removesuffix('.c') for name in os.listdir(HOME) if name.startswith('test_')}
    tests = _run(words)
    if not tests and RUNS_ALL in words.split():
        tests = there
    others = sorted(os.path.basename(_source(test)) for test in there - tests)
    others += _unused_scripts(words, tests)
    others += sorted(DIRECTORIES - set(re.findall(r'\b(\w+)/', words)))
    programs = sorted([*(test for test in tests if not test.endswith('.sh')),
                       *(name[:-2] for name in os.listdir(HOME) if name.endswith('.c') and not name.startswith('test_'))])
    return [Tree(HOME, 'skips', *others), *(os.path.join(paths.SELFTESTS, name) for name in programs)]
