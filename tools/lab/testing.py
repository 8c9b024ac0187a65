"""unittest, ended by the line that checks sum up: "N passed, N failed, N skipped"."""

import sys
import time
import unittest


def until(condition, seconds=20):
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('not so after %d s' % seconds)
        time.sleep(0.02)


def main(module):
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors)
    print('%d passed, %d failed, %d skipped' % (
        result.testsRun - bad - len(result.skipped), bad, len(result.skipped)))
    return 0 if result.wasSuccessful() and result.testsRun else 1
