"""unittest, ended by the line that checks sum up: "N passed, N failed, N skipped"."""

import sys
import unittest


def main(module):
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors)
    print('%d passed, %d failed, %d skipped' % (
        result.testsRun - bad - len(result.skipped), bad, len(result.skipped)))
    return 0 if result.wasSuccessful() and result.testsRun else 1
