"""What tools/skuad/run-test.sh counts."""

import os
import shutil
import subprocess
import tempfile
import unittest

from testing import LAB


class RunTest(unittest.TestCase):
    """What tools/skuad/run-test.sh counts."""

    def counts(self, text):
        where = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, where)
        program = os.path.join(where, 'test_x')
        with open(program, 'w') as file:
            file.write('#!/bin/sh\n' + text)
        os.chmod(program, 0o755)
        subprocess.run([os.path.join(LAB, '../skuad/run-test.sh'), program, program + '.ran'], check=True,
                       stdout=subprocess.DEVNULL)
        with open(program + '.ran') as file:
            return file.read().split()

    def test_tests_by_name(self):
        self.assertEqual(self.counts('echo "[       OK ] A-1: a"; echo "[  FAILED  ] b"; echo "[  FAILED  ] b"; exit 1'),
                         ['test_x', '1', '1', '0'])
        self.assertEqual(self.counts('echo "[       OK ] a"; echo "[  SKIPPED ] b"'), ['test_x', '1', '0', '1'])

    def test_one_that_dies(self):
        self.assertEqual(self.counts('echo "[       OK ] a"; kill -9 $$'), ['test_x', '1', '1', '0'])

    def test_one_without_cmocka(self):
        self.assertEqual(self.counts('echo "100 passed, 0 failed, 0 skipped"'), ['test_x', '1', '0', '0'])
        self.assertEqual(self.counts('exit 77'), ['test_x', '0', '0', '1'])
        self.assertEqual(self.counts('echo "99 passed, 1 failed, 0 skipped"; exit 1'), ['test_x', '0', '1', '0'])

    def test_one_that_tests_nothing(self):
        for text in '', 'echo "[==========] Running 0 test(s)."', 'echo "0 passed, 0 failed, 0 skipped"':
            self.assertEqual(self.counts(text), ['test_x', '0', '1', '0'])
