"""What `lab run` promises: statuses, streams, artefacts."""

import contextlib
import glob
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

from skualab.machines.skuad import SKUACTL
from skualab.roots import chroot
from skualab.target.arch import ARCH
from testing import LAB, until

SECONDS = '240'     # for a guest and its command, also where others use the processors
PATIENCE = 300      # of these tests, for a guest

# Quiet the stack, tell what the device has counted, and say when the link is down and up.
STATISTICS_SCRIPT = '''
left sysctl -q -w net.ipv6.conf.skua0.disable_ipv6=1
right sysctl -q -w net.ipv6.conf.skua1.disable_ipv6=1
left ping -q -c 20 -i 0.02 192.0.2.2 >/dev/null || exit 1
sleep 0.5
left ethtool -S skua0 >stats
touch asked
for state in down up; do
	i=0
	until [ "$(left cat /sys/class/net/skua0/operstate)" = $state ]; do
		sleep 0.1
		[ $((i += 1)) -lt 200 ] || exit 2
	done
	touch $state
done
left ping -q -c 1 -w 5 192.0.2.2 >/dev/null
'''


# VLANs 7, 8 and 9: RC and UD with a service level for each side, and rdma_cm, whose comes from the VLAN interface.
VLANS_SCRIPT = '''
both() {
	local server status=0 end=$((SECONDS + 15))
	right timeout 20 $1 &
	server=$!
	until right ss -ltnH | grep -q :18515 || right rdma resource show cm_id | grep -q 'state LISTEN'; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
	left timeout 20 $2 && wait $server
}
gid() { basename "$(grep -l ffff:0a0$2:000$3 /sys/class/infiniband/$1/ports/1/gids/*)"; }
for vid in 7 8 9; do
	for side in 'left skua0 1' 'right skua1 2'; do
		set -- $side
		ip -n $1 link add link $2 name $2.$vid type vlan id $vid egress-qos-map 0:3 &&
			ip -n $1 address add 10.$vid.0.$3/24 dev $2.$vid && ip -n $1 link set $2.$vid up || exit
	done
done
end=$((SECONDS + 10))
until (gid skua_0 7 1 && gid skua_1 7 2 && gid skua_0 8 1 && gid skua_1 8 2) >/dev/null 2>&1; do
	[ $SECONDS -lt $end ] || exit 2
	sleep 0.1
done
both "ibv_rc_pingpong -c -n 20 -d skua_1 -g $(gid skua_1 7 2) -l 6" \
	"ibv_rc_pingpong -c -n 20 -d skua_0 -g $(gid skua_0 7 1) -l 5 192.0.2.2" || exit
both "ibv_ud_pingpong -c -s 1000 -n 20 -d skua_1 -g $(gid skua_1 8 2) -l 1" \
	"ibv_ud_pingpong -c -s 1000 -n 20 -d skua_0 -g $(gid skua_0 8 1) -l 2 192.0.2.2" || exit
both 'rping -s -a 10.9.0.2 -V -C 10' 'rping -c -a 10.9.0.2 -V -C 10' || exit
both 'rping -s -a 192.0.2.2 -V -C 10' 'rping -c -a 192.0.2.2 -V -C 10'
'''


class Exec(unittest.TestCase):
    def test_the_path_of_a_user_will_do(self):
        done = subprocess.run([os.path.join(LAB, 'lab'), 'exec', '--', 'sh', '-c', 'exit 3'],
                              env={**os.environ, 'PATH': '/usr/bin:/bin'}, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (3, ''))

    def test_a_socket_of_skuactl_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as place:
            for name in ('control', place + '/nowhere/control'):
                done = subprocess.run([os.path.join(LAB, 'lab'), 'skuactl', '--socket', name, 'devices'], cwd=place,
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr, 'skuactl: %s: No such file or directory (is skuad running?)\n'
                                 % os.path.join(place, name))


class Run(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.artifacts = os.path.join(self.place.name, 'artifacts')

    def lab(self, *words):
        """(status, standard output, last line of standard error, result.json)"""
        done = subprocess.run(
            [os.path.join(LAB, 'lab'), 'run', '--artifacts', self.artifacts, '--timeout', SECONDS, *words],
            capture_output=True, text=True, timeout=PATIENCE)
        with open(os.path.join(self.artifacts, 'result.json')) as file:
            return done.returncode, done.stdout, done.stderr.splitlines()[-1], json.load(file)

    def test_the_status_and_output_are_the_commands(self):
        share = os.path.join(self.place.name, 'share')
        os.mkdir(share)
        with open(os.path.join(share, 'file'), 'w') as file:
            file.write('from the host\n')
        status, output, last, result = self.lab(
            '--share', share, '--env', 'WORD=a b', '--cpus', '1', '--', 'sh', '-c',
            'cat file; echo "$WORD"; nproc; id -un; left ip -br -4 address show skua0; '
            'right ip -br -4 address show skua1; echo to the host >answer; exit 3')
        self.assertEqual(status, 3, last)
        lines = output.splitlines()
        self.assertEqual(lines[:4], ['from the host', 'a b', '1', 'root'])
        self.assertIn('192.0.2.1/24', lines[4])
        self.assertIn('192.0.2.2/24', lines[5])
        with open(os.path.join(share, 'answer')) as file:
            self.assertEqual(file.read(), 'to the host\n')
        self.assertEqual((result['status'], result['cause']), (3, 'command'))

    def test_its_clock_is_right(self):
        share = os.path.join(self.place.name, 'share')
        os.mkdir(share)
        status, _, last, _ = self.lab('--share', share, '--', 'sh', '-c',
                                      'for name in first last; do date +%s%N >$name; sleep 3; done')
        self.assertEqual(status, 0, last)
        first, last = (os.path.join(share, name) for name in ('first', 'last'))
        said = int(open(last).read()) - int(open(first).read())
        was = os.stat(last).st_mtime_ns - os.stat(first).st_mtime_ns
        self.assertTrue(0.8 < said / was < 1.25, (said, was))

    def test_a_share_gets_no_setuid_file_and_no_device(self):
        share = os.path.join(self.place.name, 'share')
        os.mkdir(share)
        status, output, last, _ = self.lab('--device', 'none', '--share', share, '--', 'sh', '-c',
                                           'cp /bin/true t; chmod 4755 t || chmod 755 t; mknod d c 1 3; ls')
        self.assertEqual(status, 0, last)
        if os.geteuid() == 0:
            self.assertEqual(output, 't\n')
            self.assertEqual(os.stat(share + '/t').st_mode & 0o7777, 0o755)

    def begin(self, said):
        """lab run of a command that takes long, once it is there."""
        run = subprocess.Popen([os.path.join(LAB, 'lab'), 'run', '--artifacts', self.artifacts, '--', 'sleep', '600'],
                               stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        end = time.monotonic() + PATIENCE
        while not self.processes() or 'guest ready' not in open(said.name).read():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        return run

    def test_a_signal_ends_all_of_it(self):
        with open(os.path.join(self.place.name, 'said'), 'w+') as said:
            run = self.begin(said)
            run.terminate()
            self.assertEqual(run.wait(20), 130)
        self.assertEqual(self.processes(), [])
        with open(os.path.join(self.artifacts, 'result.json')) as file:
            self.assertEqual(json.load(file)['cause'], 'interrupted')

    def test_its_death_ends_all_of_it(self):
        with open(os.path.join(self.place.name, 'said'), 'w+') as said:
            run = self.begin(said)
            run.kill()
            run.wait()
        until(lambda: not self.processes())

    def processes(self):
        """Those that name the artefacts' directory, as QEMU does."""
        found = []
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            with contextlib.suppress(OSError), open(path) as file:
                words = file.read().split('\0')
                if ARCH.emulator in words and any(self.artifacts in word for word in words):
                    found.append(path)
        return found

    def test_timeout(self):
        status, _, last, result = self.lab('--timeout', '20', '--', 'sleep', '600')
        self.assertEqual((status, result['cause']), (124, 'timeout'), last)
        self.assertIn('124 timeout', last)

    def test_panic(self):
        status, _, last, result = self.lab('--', 'sh', '-c', 'echo c >/proc/sysrq-trigger')
        self.assertEqual((status, result['cause']), (126, 'kernel'), last)
        self.assertIn('126 kernel', last)
        self.assertIn('sysrq', result['detail'].lower() + open(os.path.join(self.artifacts, 'dmesg.log')).read())

    def tshark(self, name, display, *words):
        """The lines that tshark has of a NIC's packets that a filter lets through."""
        # Without the dissector of NFS over RDMA: it calls any SEND of less than 13 bytes malformed.
        done = chroot.run(['tshark', '-n', '--disable-protocol', 'rpcordma', '-r', os.path.join(self.artifacts, name),
                           '-Y', display, *words],
                          binds=[self.artifacts], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines()

    def test_capture(self):
        status, _, last, _ = self.lab(
            '--capture', '--', 'sh', '-c', 'left rdma_traffic -Q -n 50 -s 0-5000 skua_0 skua_1; left ping -c 2 192.0.2.2')
        self.assertEqual(status, 0, last)
        for name in ('skua0.pcapng', 'skua1.pcapng'):
            self.assertGreater(len(self.tshark(name, 'infiniband.invariant.crc')), 50)
            self.assertGreater(len(self.tshark(name, 'icmp')), 3)
            self.assertEqual(self.tshark(name, '_ws.malformed || _ws.short || _ws.expert.severity >= 8388608'), [])

    def packets(self, name):
        """{(source, destination): {(VLAN, priority, opcode)}} of a NIC's RoCEv2 packets, as tshark reads them."""
        fields = 'ip.src', 'ip.dst', 'vlan.id', 'vlan.priority', 'infiniband.bth.opcode'
        found = {}
        for line in self.tshark(name, 'udp.dstport == 4791 && ip', '-T', 'fields',
                                *(word for field in fields for word in ('-e', field))):
            source, destination, *rest = line.split('\t')
            found.setdefault((source, destination), set()).add(tuple(rest))
        return found

    def test_vlan_tags(self):
        """ROC-1, and the priority of the service level: requests, answers and datagrams."""
        status, output, last, _ = self.lab('--capture', '--', 'bash', '-c', VLANS_SCRIPT)
        self.assertEqual(status, 0, '%s: %s' % (last, output))
        # SENDs and their ACKs; datagrams; those of the connection manager, then what rping's server reads.
        sends, datagrams, asks, answers = {'0', '2', '17'}, {'100'}, {'100', '12'}, {'100', '16'}
        wanted = {
            ('10.7.0.1', '10.7.0.2', '7', '5'): sends, ('10.7.0.2', '10.7.0.1', '7', '6'): sends,
            ('10.8.0.1', '10.8.0.2', '8', '2'): datagrams, ('10.8.0.2', '10.8.0.1', '8', '1'): datagrams,
            ('10.9.0.1', '10.9.0.2', '9', '3'): answers, ('10.9.0.2', '10.9.0.1', '9', '3'): asks,
            ('192.0.2.1', '192.0.2.2', '', ''): answers, ('192.0.2.2', '192.0.2.1', '', ''): asks,
        }
        for name in ('skua0.pcapng', 'skua1.pcapng'):
            found = self.packets(name)
            self.assertEqual(set(found), {ends[:2] for ends in wanted}, name)
            for (*ends, vlan, priority), opcodes in wanted.items():
                tags = {tag[:2] for tag in found[tuple(ends)]}
                self.assertEqual(tags, {(vlan, priority)}, (name, ends))
                self.assertLessEqual(opcodes, {tag[2] for tag in found[tuple(ends)]}, (name, ends))

    def test_statistics_and_the_link_are_skuactls(self):
        with open(os.path.join(self.place.name, 'script'), 'w') as file:
            file.write(STATISTICS_SCRIPT)
        with subprocess.Popen(
                [os.path.join(LAB, 'lab'), 'run', '--artifacts', self.artifacts, '--timeout', SECONDS,
                 '--share', self.place.name, '--', 'sh', 'script'], stderr=subprocess.PIPE, text=True) as guest:
            control = next(filter(None, (re.search(r'--socket (\S+)', line) for line in guest.stderr)))[1]

            def skuactl(*words):
                done = chroot.run([SKUACTL, '--socket', control, '--json', *words],
                                  binds=[os.path.dirname(control)], stdout=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 0, words)
                return done.stdout

            self.wait_for('asked', guest)
            with open(os.path.join(self.place.name, 'stats')) as file:
                theirs = dict(re.findall(r'^ *(\w+): (\d+)$', file.read(), re.M))
            ours = json.loads(skuactl('counters', 'skua0'))['counters']['skua0']
            self.assertGreater(ours['tx_frames'], 20)
            self.assertEqual({name: int(theirs[name]) for name in ours}, ours)
            for state in 'down', 'up':
                skuactl('link', 'skua0', state)
                self.wait_for(state, guest)
            last = guest.stderr.read()
        self.assertEqual(guest.returncode, 0, last)

    def wait_for(self, name, guest):
        end = time.monotonic() + PATIENCE
        while not os.path.exists(os.path.join(self.place.name, name)):
            self.assertIsNone(guest.poll(), 'the guest ended')
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_skuactl_in_the_guest(self):
        status, output, last, _ = self.lab(
            '--', 'sh', '-c', """skuactl devices | cut -d" " -f1; skuactl link skua0 down && left cat /sys/class/net/skua0/carrier
                skuactl link skua0 up; for i in 1 2 3 4 5 6; do left skuactl --json counters >/tmp/$i & done; wait
                cat /tmp/[1-6] | grep -c '"ok": *true'; skuactl capture skua0 -w /tmp/x 2>&1""")
        self.assertEqual(output.splitlines()[:5], ['DEVICE', 'skua0', 'skua1', '0', '6'], last)
        self.assertIn('on the host only', output)
        self.assertEqual(status, 1)

    def test_impairments(self):
        status, output, last, _ = self.lab(
            '--', 'sh', '-c', """skuactl impair skua0 drop=1% duplicate=1% corrupt=1% seed=7 >/dev/null &&
                left rdma_traffic -Q -q 4 -n 2000 -s 0-20000 skua_0 skua_1 &&
                skuactl --json impair skua0 | tr -d ' \n' | grep -o '"done":[0-9]*' && skuactl impair skua0 none &&
                skuactl --json counters skua0 | grep -o '"retransmits": *[0-9]*'""")
        self.assertEqual(status, 0, last)
        numbers = [int(number) for number in re.findall(r'"(?:done|retransmits)": *(\d+)', output)]
        self.assertEqual(len(numbers), 4, output)
        self.assertGreater(min(numbers), 0, output)

    def test_exclusive_namespaces(self):
        status, output, last, _ = self.lab('--netns', 'exclusive', '--', 'sh', '-c',
                                           'ls /sys/class/infiniband; left ls /sys/class/infiniband')
        self.assertEqual(status, 0, last)
        self.assertEqual(output.split(), ['skua_0'])

    def test_without_namespaces_and_nics(self):
        status, output, last, _ = self.lab('--netns', 'none', '--device', 'none', '--', 'ls', '/sys/class/infiniband')
        self.assertNotEqual(status, 0, last)
        self.assertEqual(output.strip(), '')

    def test_a_bad_device_option(self):
        status, _, last, result = self.lab('--device', 'colour=red', '--', 'true')
        self.assertEqual((status, result['cause']), (125, 'lab'), last)
        self.assertIn('colour', last)
