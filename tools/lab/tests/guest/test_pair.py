"""lab run --guests 2."""

import json
import os
import subprocess
import tempfile
import unittest

from testing import LAB

SECONDS = '240'     # for a guest and its command, also where others use the processors
PATIENCE = 300      # of these tests, for a guest


class Pair(unittest.TestCase):
    """lab run --guests 2."""

    def pair(self, left, right, *words):
        """(status, lines of standard output, result.json)"""
        with tempfile.TemporaryDirectory() as artifacts:
            done = subprocess.run(
                [os.path.join(LAB, 'lab'), 'run', '--guests', '2', '--cpus', '1', '--mem', '1G', '--timeout', SECONDS,
                 '--artifacts', artifacts, '--left', left, '--right', right, *words],
                capture_output=True, text=True, timeout=PATIENCE)
            with open(os.path.join(artifacts, 'result.json')) as file:
                return done.returncode, done.stdout.splitlines(), json.load(file)

    def test_a_server_and_its_client(self):
        status, lines, result = self.pair(
            'hostname; ibv_rc_pingpong -c -d skua_0 -g 1 192.0.2.2 | tail -n1',
            'hostname; ibv_rc_pingpong -c -d skua_1 -g 1 | tail -n1')
        self.assertEqual(status, 0, result)
        self.assertIn('left  | left', lines)
        self.assertIn('right | right', lines)
        self.assertEqual(sum('usec/iter' in line for line in lines), 2)
        self.assertEqual((result['left']['status'], result['right']['status']), (0, 0))

    def test_one_that_fails_ends_the_other(self):
        status, _, result = self.pair('sleep 1000', 'exit 3')
        self.assertEqual((status, result['cause'], result['detail']), (3, 'command', 'right: status 3'))
        self.assertEqual(result['left']['cause'], 'ended')

    def test_a_panic_of_one(self):
        status, _, result = self.pair('echo c >/proc/sysrq-trigger', 'sleep 1000')
        self.assertEqual((status, result['cause']), (126, 'kernel'), result)
        self.assertTrue(result['detail'].startswith('left: '), result)
