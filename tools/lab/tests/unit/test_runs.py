"""Runs of guests, without guests."""

import contextlib
import io
import os
import struct
import tempfile
import threading
import time
import unittest
from unittest import mock

from skualab.host import paths, say
from skualab.products import debuginfo, stages
from skualab.roots.stage import Stage
from skualab.runs import debugger, demo, nodes, perftest, scene, shell, symbols, together
from skualab.target.distro import DISTRO
import across
from testing import until


class Build(unittest.TestCase):
    def built(self, **options):
        ran = []
        with mock.patch.object(Stage, 'run', lambda stage: ran.append(stage)):
            scene.build(DISTRO.kernel, scene.Options(**options))
        return ran

    def test_who_shares_the_selftests_gets_those_of_now(self):
        with tempfile.TemporaryDirectory() as place:
            os.symlink(paths.SELFTESTS, place + '/link')
            for share in paths.SELFTESTS, place + '/link':
                self.assertEqual(self.built(share=share)[-len(stages.SELFTESTS):], stages.SELFTESTS)
            for options in ({}, {'share': place}):
                self.assertEqual(self.built(**options), stages.guest(DISTRO.kernel))


class Demonstration(unittest.TestCase):
    """The NICs' counters after a program."""

    def skuad(self, *received):
        """Of 100 bytes the right NIC has received so many, at each reading."""
        left = {'rdma_tx_bytes': 100, 'rdma_rx_bytes': 0}
        return mock.Mock(**{'counters.side_effect': [
            {'skua0': left, 'skua1': {'rdma_tx_bytes': 0, 'rdma_rx_bytes': count}} for count in received]})

    def test_the_last_frames_are_waited_for(self):
        self.assertEqual(demo._at_rest(self.skuad(40, 90, 100), 'rping')['skua1']['rdma_rx_bytes'], 100)

    def test_a_lost_frame_is_told(self):
        with mock.patch.object(demo, 'REST', 0.3), self.assertRaisesRegex(say.LabError, 'rping: .* 100 .* 90'):
            demo._at_rest(self.skuad(*[90] * 9), 'rping')


class Across(unittest.TestCase):
    """A scenario between guests whose kernel tells of a fault."""

    def guest(self, fault):
        guest = mock.Mock(fault=fault, **{'process.ended.return_value': None})
        guest.output.return_value = 0, 'done'
        return guest

    def run_with(self, fault):
        node, up = mock.Mock(**{'play.guest': self.guest(fault)}), mock.MagicMock()
        node.name = 'node1'
        up.__enter__.return_value.__iter__.return_value = [node]
        up.__exit__.return_value = False
        with mock.patch.object(across, 'Nodes', return_value=up), across.guests([], None):
            pass

    def test_none_is_well(self):
        self.run_with(None)

    def test_a_fault_fails_the_scenario(self):
        with self.assertRaisesRegex(say.LabError, 'node1: WARNING: x'):
            self.run_with('WARNING: x')

    def test_a_fault_fails_the_programs(self):
        for faults in ((None, 'BUG: y'), ('BUG: y', None)):
            server, client = map(self.guest, faults)
            self.assertEqual(across.both(server, '', client, '')[0], 'BUG: y')

    def test_a_guest_that_ends_leaves_what_was_tried_before(self):
        matrix, out = across.Matrix(), io.StringIO()
        with contextlib.redirect_stdout(out):
            with matrix.guarded('all'):
                matrix.add('rds', 'from left', 'ok')
                raise across.GuestEnded("the guest's kernel: BUG: y")
            status = matrix.show()
        self.assertEqual(status, 1)
        self.assertIn("all, guests: the guest's kernel: BUG: y\n", out.getvalue())
        self.assertTrue(out.getvalue().endswith('\n1 passed, 1 failed, 0 skipped\n'))


class SeveralGuests(unittest.TestCase):
    """What fails in the thread of a guest is the outcome of its node, not a traceback."""

    def node(self, name='left', **play):
        node = nodes.Node.__new__(nodes.Node)
        node.name, node.command, node.outcome = name, 'true', None
        node.play = mock.Mock(**play)
        node.play.guest.fault = None
        return node

    def test_a_guest_that_cannot_be_started(self):
        node = self.node(**{'start.side_effect': OSError(28, 'No space left on device')})
        self.assertFalse(nodes.Nodes([node], None).boot(0))
        self.assertEqual(node.outcome, (125, 'lab', 'a disk: No space left on device; make room there'))

    def test_output_that_cannot_be_written(self):
        node = self.node(**{'script.return_value': 'true'})
        node.play.guest.run.side_effect = lambda command, end, out, err: out(b'no end of line')
        writer = mock.Mock(side_effect=BrokenPipeError(32, 'Broken pipe'))
        node.work(0, (writer, writer))
        self.assertEqual(node.outcome, (125, 'lab', 'the program that read the output of the lab has ended'))


class InOrder(unittest.TestCase):
    """The commands of several guests: when they begin, and that the first that fails ends the others."""

    def setUp(self):
        self.began, self.serving = [], threading.Event()
        self.stopped = {}
        patch = mock.patch.object(together, '_serves', lambda node: self.serving.is_set())
        patch.start()
        self.addCleanup(patch.stop)

    def node(self, name, status=0, until=None):
        """A guest whose command ends when an event is set, or the guest is stopped."""
        stopped = self.stopped[name] = threading.Event()

        def work(_end, _writers, _before, _width):
            self.began.append(name)
            while until and not until.is_set() and not stopped.is_set():
                time.sleep(0.01)
            node.outcome = (125, 'lab', 'ended') if stopped.is_set() else (status, 'command', 'status')
        node = nodes.Node.__new__(nodes.Node)
        node.name, node.outcome, node.play, node.work = name, None, mock.Mock(), work
        node.play.guest.process.stop = lambda grace: stopped.set()
        return node

    def test_the_others_wait_for_the_server(self):
        done = threading.Event()
        several = [self.node('node%d' % number, until=done) for number in range(4)]
        worker = threading.Thread(target=together._work, args=(several, several[2], 0, ()))
        worker.start()
        time.sleep(0.2)
        self.assertEqual(self.began, ['node2'])
        self.serving.set()
        until(lambda: len(self.began) == 4)
        done.set()
        worker.join()
        self.assertEqual([node.outcome[0] for node in several], [0] * 4)

    def test_a_server_that_has_ended_is_not_waited_for(self):
        several = [self.node('a'), self.node('b'), self.node('c')]
        together._work(several, several[0], 0, ())
        self.assertEqual(sorted(self.began), ['a', 'b', 'c'])

    def test_the_first_that_fails_ends_the_others(self):
        self.serving.set()
        never = threading.Event()
        several = [self.node('a', until=never), self.node('b', status=3), self.node('c'), self.node('d', until=never)]
        together._work(several, several[0], 0, ())
        self.assertEqual({node.name: node.outcome and node.outcome[0] for node in several if node.name != 'c'},
                         {'a': None, 'b': 3, 'd': None})
        self.assertEqual([self.stopped[name].is_set() for name in 'abd'], [True, False, True])

    def test_their_nics(self):
        for name, number, line in (
                ('right', 1, '02:00:00:00:00:02 skua1 skua_1 right 192.0.2.2/24 2001:db8::2/64'),
                ('node3', 2, '02:00:00:00:00:03 skua0 skua_0 left 192.0.2.3/24 2001:db8::3/64')):
            nic = together._nic(number, name, '')
            self.assertEqual((nic.line(), nic.name), (line, 'skua1' if name == 'right' else name))


class Figures(unittest.TestCase):
    """The output of perftest and ibv_rc_pingpong."""

    def test_bandwidth(self):
        text = ' #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n' \
               ' 65536      5000             25703.54            1000.00             0.259564\n'
        self.assertEqual(perftest.result('ib_write_bw', 65536, text), 1000 * 2**20)

    def test_latency(self):
        text = ' 8       1000          7.04           15.92        8.50     	       7.27        	0.61\n'
        self.assertAlmostEqual(perftest.result('ib_read_lat', 8, text), 8.5e-6)

    def test_pingpong(self):
        text = '8192000 bytes in 0.43 seconds = 153.26 Mbit/sec\n1000 iters in 0.43 seconds = 427.61 usec/iter\n'
        self.assertAlmostEqual(perftest.result('ibv_rc_pingpong', 4096, text), 427.61e-6)

    def test_no_figure(self):
        with self.assertRaises(say.LabError):
            perftest.result('ib_read_lat', 8, 'Unable to open device\n')


class Shell(unittest.TestCase):
    def status(self, fault=None, ended=None):
        """Of lab shell after a shell with status 3."""
        play = mock.Mock()
        play.guest.fault, play.skuad.ended.return_value = fault, ended
        return shell._outcome(play, 3)

    def test_what_ended_besides_is_told(self):
        self.assertEqual((self.status(), self.status('WARNING'), self.status(ended=-11)), (3, 126, 125))


class Debugger(unittest.TestCase):
    ASKED = '''/sys/module/skua/sections/.text 0xffffffffa0001000
/sys/module/skua/sections/.init.text 0xffffffffa0009000
/sys/module/skua/sections/.data 0xffffffffa0005000
/sys/module/ib_core/sections/.text 0xffffffffa0101000
'''

    def test_gdb_reads_the_symbols_of_modules_where_the_guest_has_them(self):
        skua = 'add-symbol-file /b/skua.ko -s .text 0xffffffffa0001000 -s .data 0xffffffffa0005000'
        core = 'add-symbol-file /d/ib_core.ko -s .text 0xffffffffa0101000'
        for known, wanted in (
                ({'skua': '/b/skua.ko'}, ['symbol-file /run/1/kernel.symbols', skua]),
                ({'skua': '/b/skua.ko', 'ib_core': '/d/ib_core.ko', 'rdma_rxe': '/d/rdma_rxe.ko', '': '/d/vmlinux'},
                 ['symbol-file /d/vmlinux', 'add-symbol-file /run/1/kernel.symbols -o 0', core, skua])):
            self.assertEqual(debugger.script('/run/1', '/tmp/1/gdb', known, self.ASKED).splitlines()[2:],
                             [*wanted, 'target remote /tmp/1/gdb'])
        lines = debugger.script('/my run', '/tmp/1/gdb', {'skua': '/my b/skua.ko', '': '/my d/x'}, self.ASKED).splitlines()
        for line in ("symbol-file '/my d/x'", "add-symbol-file '/my run/kernel.symbols' -o 0"):
            self.assertIn(line, lines)
        self.assertIn("add-symbol-file '/my b/skua.ko' -s", '\n'.join(lines))

    def test_debug_information_is_of_the_kernel_that_boots(self):
        with tempfile.TemporaryDirectory() as place, \
                mock.patch.object(debugger.modules, 'directory', return_value=place + '/9.9'), \
                mock.patch.object(debuginfo.kernels, 'directory', return_value=place + '/9.9'), \
                mock.patch.object(debuginfo.root, 'releases', return_value={'9.9': '9.9.2-x'}):
            files = {name: os.path.join(place, name) for name in (
                '9.9.build/skua.ko', '9.9.debuginfo/boot/vmlinux-9.9.1-x', '9.9.debuginfo/boot/vmlinux-9.9.2-x',
                '9.9.debuginfo/lib/modules/9.9.2-x/kernel/nvme/nvme-rdma.ko')}
            for name in files.values():
                os.makedirs(os.path.dirname(name), exist_ok=True)
                open(name, 'w').close()
            self.assertEqual(debugger.known_files('9.9'), {
                module: os.path.realpath(files[end]) for module, end in (
                    ('skua', '9.9.build/skua.ko'), ('', '9.9.debuginfo/boot/vmlinux-9.9.2-x'),
                    ('nvme_rdma', '9.9.debuginfo/lib/modules/9.9.2-x/kernel/nvme/nvme-rdma.ko'))})

    def test_the_kernel_names_its_functions_but_not_ours(self):
        said = ('ffffffff81000010 T later\nffffffff81000000 t first\n0000000000000040 t of_a_processor\n'
                'ffffffffa0001000 t skua_ours\t[skua]\nffffffffa0101000 t theirs\t[ib_core]\n')
        named = symbols.functions(said, ['skua'])
        self.assertEqual(named, [(0xffffffff81000000, 'first'), (0xffffffff81000010, 'later'),
                                 (0xffffffffa0101000, 'theirs')])
        file = symbols.elf(named)
        self.assertEqual(file[:7], b'\x7fELF\2\1\1')
        self.assertIn(b'\0first\0later\0theirs\0', file)
        # first: its name, a local function of section 1, from where to where
        self.assertIn(struct.pack('<IBBHQQ', 1, 2, 0, 1, 0xffffffff81000000, 16), file)

    def test_a_build_directory_elsewhere_has_sources_too(self):
        for build, wanted in ('/a/build', ['/a']), ('/b', ['/a', '/b']), ('/ab', ['/a', '/ab']):
            with mock.patch.multiple(paths, REPO='/a', BUILD=build):
                self.assertEqual(debugger.places(), wanted)
