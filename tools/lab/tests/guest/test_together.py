"""lab run --guests N."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

from skualab.host import paths
from skualab.machines import ssh
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
            'hostname; ibv_rc_pingpong -e -c -n 200 -d skua_0 -g 1 192.0.2.2 | tail -n1',
            'hostname; ibv_rc_pingpong -e -c -n 200 -d skua_1 -g 1 | tail -n1')
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


class Ssh(unittest.TestCase):
    """Guests log in to each other, and to no one else's."""

    SCRIPT = '''set -e; cd /root
        for name in node2 192.0.2.2 node1; do ssh $name 'hostname; ulimit -l' | xargs; done
        ssh node2 'ssh node1 exit 3' || echo $?
        echo 'from node1' >file && scp -q file node2: && ssh node2 cat file
        if ssh -o PubkeyAuthentication=no node2 true 2>/dev/null; then exit 9; fi
        stat -c %a .ssh/id_ed25519 /etc/ssh/ssh_host_ed25519_key | xargs'''

    def test_without_a_password(self):
        done = subprocess.run(
            [os.path.join(LAB, 'lab'), 'run', '--guests', '2', '--cpus', '1', '--timeout', SECONDS,
             '--guest', 'node1=' + self.SCRIPT, '--all', 'true'],
            stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout.splitlines()), (0, ['node1 | ' + line for line in (
            'node2 unlimited', 'node2 unlimited', 'node1 unlimited', '3', 'from node1', '600 600')]))

    def test_the_keys_are_of_one_run(self):
        first, second = vars(ssh.Keys()), vars(ssh.Keys())
        self.assertEqual((len(first), len({*first.values(), *second.values()})), (4, 8))
        self.assertEqual(glob.glob(os.path.join(paths.ROOT, 'etc/ssh/ssh_host_*')), [])
        self.assertEqual(glob.glob(os.path.join(paths.ROOT, 'root/.ssh/*')), [])


class Three(unittest.TestCase):
    """Guests that are all alike, on one switch."""

    # node1 serves each of the others in turn; each finds all by name.
    SERVES = """hostname; for peer in node2 node3; do
            ibv_rc_pingpong -e -c -n 200 -d skua_0 -g 1 -p $((18514 + ${peer#node})) | tail -n1 || exit; done"""
    # node1 listens for one after the other. Who finds nobody there asks again, but not who finds wrong data.
    ASKS = """me=$(hostname); for peer in node1 node2 node3; do ping -q -c 1 -w 20 $peer >/dev/null || exit; done
        for i in {1..600}; do
            ibv_rc_pingpong -e -c -n 200 -d skua_0 -g 1 -p $((18514 + ${me#node})) node1 >/tmp/said 2>&1 &&
                exec tail -n1 /tmp/said
            grep -q "^Couldn't connect to " /tmp/said || break
            sleep 0.2
        done; cat /tmp/said; exit 1"""

    def test_they_ping_and_write_to_each_other(self):
        with tempfile.TemporaryDirectory() as artifacts:
            done = subprocess.run(
                [os.path.join(LAB, 'lab'), 'run', '--guests', '3', '--cpus', '1', '--mem', '1G', '--timeout', SECONDS,
                 '--capture', '--artifacts', artifacts, '--guest', 'node1=' + self.SERVES, '--all', self.ASKS],
                capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            lines = done.stdout.splitlines()
            self.assertIn('node1 | node1', lines)
            for node, count in (('node1', 2), ('node2', 1), ('node3', 1)):
                self.assertEqual(sum(line.startswith(node) and 'usec/iter' in line for line in lines), count, lines)
                self.assertGreater(os.path.getsize(os.path.join(artifacts, node + '.pcapng')), 100000)
            with open(os.path.join(artifacts, 'result.json')) as file:
                result = json.load(file)
            self.assertEqual([result[node]['status'] for node in ('node1', 'node2', 'node3')], [0, 0, 0])
