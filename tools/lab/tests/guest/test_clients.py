"""What clients of skuad get that it cannot serve."""

import json
import os
import socket
import struct
import subprocess
import tempfile
import unittest

from skualab.machines.nics import Nic
from skualab.machines.skuad import Skuad
from skualab.roots import chroot, program
from skualab.target.arch import ARCH
from testing import until


class Clients(unittest.TestCase):
    """skuad as it is built for use: confined, and with QEMU."""

    VERSION, DMA_MAP, REGION_WRITE = 1, 2, 10
    BAR0, CONFIG = 0, 7

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        nic = Nic(0)
        self.skuad = Skuad([nic], self.place)
        self.socket = self.skuad.socket(nic)
        self.addCleanup(self.skuad.stop)

    def logged(self, words):
        with open(os.path.join(self.place, 'skuad.log')) as file:
            return [line for line in file if words in line]

    def qemu(self, *options):
        device = {'driver': 'vfio-user-pci', 'socket': {'path': self.socket, 'type': 'unix'}}
        return [ARCH.emulator, '-nodefaults', '-display', 'none', '-S', '-accel', 'tcg',
                '-device', json.dumps(device), *options]

    def refused(self, *options):
        """Standard error of a QEMU that has to give up by itself."""
        done = chroot.run(self.qemu(*options), binds=[self.skuad.place], stderr=subprocess.PIPE, text=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    SHARED = ('-object', 'memory-backend-memfd,id=mem0,size=128M,share=on', '-machine', ARCH.machine + ',memory-backend=mem0')

    def test_memory_that_is_not_shared(self):
        self.refused('-machine', ARCH.machine, '-m', '128M')
        self.assertEqual(len(self.logged('guest memory is not shared with skuad')), 1)
        self.assertIsNone(self.skuad.ended())

    def test_a_second_qemu(self):
        with open(os.path.join(self.place, 'qemu.log'), 'w') as log:
            first = program.Process(self.qemu(*self.SHARED), log, binds=[self.skuad.place])
        self.addCleanup(first.stop)
        until(lambda: self.logged('a client has connected'))
        self.assertIn('busy', self.refused(*self.SHARED).lower())
        self.assertEqual(len(self.logged('a second client was refused')), 1)
        self.assertIsNone(first.ended())

    def call(self, client, command, body, fds=()):
        """Send a command; its reply's error, or None if the connection is over."""
        socket.send_fds(client, [struct.pack('=HHIII', 0, command, 16 + len(body), 0, 0) + body], fds)
        reply = client.recv(4096)
        return struct.unpack('=I', reply[12:16])[0] if reply else None

    def write(self, client, region, offset, text):
        return self.call(client, self.REGION_WRITE, struct.pack('=QII', offset, region, len(text)) + text)

    def test_memory_that_is_cut(self):
        memory = os.memfd_create('guest')
        self.addCleanup(os.close, memory)
        os.ftruncate(memory, 1 << 20)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            client.settimeout(10)
            self.assertEqual(self.call(client, self.VERSION, bytes(4)), 0)
            self.assertEqual(self.call(client, self.DMA_MAP, struct.pack('=IIQQQ', 32, 3, 0, 0, 1 << 20), [memory]), 0)
            self.assertEqual(self.write(client, self.CONFIG, 4, b'\x06\0'), 0)
            os.ftruncate(memory, 0)
            # The command queue's record, at 0x2000, and ENABLE: the device looks at the record.
            for register, value in ((0x40, 0), (0x48, 0x1000), (0x50, 0x2000), (0x0c, 2)):
                self.write(client, self.BAR0, register, struct.pack('=I', value))
            self.assertEqual(client.recv(4096), b'')
        self.assertEqual(len(self.logged('connection ended: guest memory is gone')), 1)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            self.assertEqual(self.call(client, self.VERSION, bytes(4)), 0)
        self.assertIsNone(self.skuad.ended())
