"""That what `lab run --gdb` says to type works: kernel, provider and skuad stop in the same run, each in its source."""

import os
import re
import shlex
import subprocess
import tempfile
import unittest

from testing import LAB, until

PATIENCE = 300      # for a guest, also where others use the processors
TRAFFIC = ['rdma_traffic', '-Q', '-n', '20', 'skua_0', 'skua_1']
IN_GUEST = ['left', 'gdb', '--batch', '-ex', 'set breakpoint pending on', '-ex', 'break skua_modify_qp', '-ex', 'run',
            '-ex', 'bt', '-ex', 'list', '-ex', 'delete', '-ex', 'continue', '--args', *TRAFFIC]


class Debugger(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def begin(self, name, words, **more):
        """A program whose output goes to a file of that name."""
        with open(os.path.join(self.place, name), 'w') as file:
            process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def said(self, name):
        with open(os.path.join(self.place, name)) as file:
            return file.read()

    def gdb(self, name, function, *more):
        """The gdb that the lab has said for this, with a breakpoint."""
        line, = re.findall(r'gdb of %s: (.*)' % name, self.said('lab'))
        process = self.begin(name, [*shlex.split(line), '--batch', '-ex', 'break ' + function, '-ex', 'continue',
                                    '-ex', 'bt', '-ex', 'list', *more, '-ex', 'delete', '-ex', 'detach'])
        until(lambda: 'Breakpoint 1' in self.said(name) or process.poll() is not None, PATIENCE)
        return process

    def test_three_at_once(self):
        guest = self.begin('lab', [os.path.join(LAB, 'lab'), 'run', '--gdb', '--artifacts', self.place + '/artifacts',
                                   '--', *IN_GUEST], stdin=subprocess.PIPE)
        self.addCleanup(guest.stdin.close)
        until(lambda: 'press Enter' in self.said('lab') or guest.poll() is not None, PATIENCE)
        debuggers = self.gdb('the kernel', 'skua_ib_modify_qp', '-ex', 'info symbol vfs_read'), self.gdb('skuad', 'resp_rx')
        guest.stdin.write(b'\n')
        guest.stdin.flush()
        for process in *debuggers, guest:
            self.assertEqual(process.wait(PATIENCE), 0, self.said('lab'))
        # A frame with its source, whose text is found.
        for name, function, file in (('lab', 'skua_modify_qp', 'qp.c'), ('the kernel', 'skua_ib_modify_qp', 'qp.c'),
                                     ('skuad', 'resp_rx', 'resp.c')):
            self.assertRegex(self.said(name), r'#0 .*%s \(.*\) at .*%s:\d+' % (function, file))
            self.assertRegex(self.said(name), r'(?m)^\d+\t.*%s\(' % function)
        # And the kernel's own functions have names.
        self.assertRegex(self.said('the kernel'), r'#1 .* in \w*ib_modify_qp')
        self.assertIn('vfs_read in section .text', self.said('the kernel'))
