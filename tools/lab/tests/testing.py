"""unittest, ended by the line that checks sum up: "N passed, N failed, N skipped"."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time
import unittest

LAB = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def until(condition, seconds=20):
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('not so after %d s' % seconds)
        time.sleep(0.02)


def script(path):
    """A Python script without a suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader('script', os.path.join(LAB, path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('script', loader))
    loader.exec_module(module)
    return module


def lab(*words):
    """(status, lines of both outputs)"""
    done = subprocess.run([os.path.join(LAB, 'lab'), *words], capture_output=True, text=True, timeout=60)
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()


def main(where, *names):
    """The tests of a module, or of the files test_*.py of a directory of tests/, or of those files test_NAME.py."""
    directory = os.path.join(LAB, 'tests', where)
    loader = unittest.defaultTestLoader
    if names:
        sys.path.insert(0, directory)
        suite = loader.loadTestsFromNames(['test_' + name for name in names])
    else:
        suite = loader.discover(directory) if os.path.isdir(directory) else loader.loadTestsFromName(where)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors)
    print('%d passed, %d failed, %d skipped' % (
        result.testsRun - bad - len(result.skipped), bad, len(result.skipped)))
    return 0 if result.wasSuccessful() and result.testsRun else 1
