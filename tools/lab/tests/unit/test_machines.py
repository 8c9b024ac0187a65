"""QEMU, its accelerator, its NICs, and what a guest says."""

import os
import subprocess
import tempfile
import unittest
from unittest import mock

from skualab.host import paths, say
from skualab.machines import accelerator, kernellog, memory, nics, qemu, ssh


class Kvm(unittest.TestCase):
    """Why KVM is not used is said; only what a kernel showed that was tried is remembered."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        for patch in (mock.patch.object(accelerator, 'ANSWER', self.place.name + '/accelerator'),
                      mock.patch.object(accelerator.paths, 'BUILD', self.place.name)):
            patch.start()
            self.addCleanup(patch.stop)

    def choose(self, lacking=None, **run):
        with mock.patch.object(accelerator, '_lacking', return_value=lacking), \
                mock.patch.object(accelerator.chroot, 'run', **run) as tried:
            return accelerator.choose('/vmlinux'), tried.call_count

    def test_a_timeout_is_not_remembered(self):
        late = subprocess.TimeoutExpired('qemu', 20)
        for _ in 'ab':
            (answer, why), tried = self.choose(side_effect=late)
            self.assertEqual((answer, tried), ('tcg', 1))
            self.assertIn('did not end within', why)

    def test_what_a_kernel_showed_is(self):
        failed = mock.Mock(stderr='warning\nqemu: failed to initialize kvm\n')
        told = ('tcg', 'KVM cannot run a stock kernel here: qemu: failed to initialize kvm')
        self.assertEqual(self.choose(return_value=failed), (told, 1))
        self.assertEqual(self.choose(), (told, 0))
        # What an earlier lab left has no reason.
        with open(accelerator.ANSWER) as file:
            boot = file.read().split()[0]
        with open(accelerator.ANSWER, 'w') as file:
            file.write('%s tcg\n' % boot)
        self.assertEqual(self.choose(return_value=failed), (told, 1))
        with open(accelerator.ANSWER, 'w') as file:
            file.write('%s kvm\n' % boot)
        self.assertEqual(self.choose(), (('kvm', ''), 0))

    def test_what_is_missing_is_not(self):
        self.assertEqual(self.choose(lacking='no right to /dev/kvm'), (('tcg', 'no right to /dev/kvm'), 0))
        self.assertFalse(os.path.exists(accelerator.ANSWER))
        self.assertEqual(accelerator.told('tcg', 'no right'), 'tcg: no right')
        self.assertEqual(accelerator.told('kvm', ''), 'kvm')


class Nics(unittest.TestCase):
    def test_defaults(self):
        nic = nics.Nic(1)
        self.assertEqual(nic.line(), '02:00:00:00:00:02 skua1 skua_1 right 192.0.2.2/24 2001:db8::2/64')

    def test_options_go_to_skuad(self):
        self.assertEqual(nics.Nic(0, 'link=wire:b').options['link'], 'wire:b')

    def test_no_value(self):
        with self.assertRaises(say.LabError):
            nics.Nic(0, 'link')

    def test_the_socket_is_ours(self):
        with self.assertRaises(say.LabError):
            nics.Nic(0, 'socket=/tmp/x')


class Memory(unittest.TestCase):
    """What several guests get of a machine's memory."""

    def fit(self, available, *sizes):
        with mock.patch.object(memory, 'available', return_value=available):
            return memory.fit(list(sizes))

    def refused(self, available, sizes, part):
        with self.assertRaisesRegex(say.LabError, part):
            self.fit(available, *sizes)

    def test_as_much_as_one_guest_gets_alone(self):
        self.assertEqual(self.fit(23000, *[None] * 8), ['2048M'] * 8)

    def test_less_where_there_is_less(self):
        self.assertEqual(self.fit(9600, *[None] * 8), ['768M'] * 8)

    def test_what_others_leave(self):
        self.assertEqual(self.fit(8192, '4G', None), ['4096M', '2048M'])
        self.assertEqual(self.fit(8192, '4G', '1.5G', None), ['4096M', '1536M', '768M'])

    def test_too_many(self):
        self.refused(6000, [None] * 8, '8 guests with 4096 MiB of memory do not fit: 6000 MiB are available, .*; '
                     '6 guests of 512M fit')

    def test_too_large(self):
        self.refused(9600, ['2G'] * 8, '8 guests of up to 768M fit')
        self.refused(9600, ['8G', None], '2 guests of up to 4032M fit')

    def test_not_even_one(self):
        self.refused(1500, [None, None], 'no guest fits')

    def test_notation(self):
        self.assertEqual([memory.mib(text) for text in ('768', '768m', '1.5G', '1048576K')], [768, 768, 1536, 1024])
        for text in ('', 'M', '1X', '-1G', '0', '1 G'):
            with self.assertRaisesRegex(say.LabError, 'must be a number'):
                memory.mib(text)


class Keys(unittest.TestCase):
    """Those that several hosts share."""

    def test_they_are_made_once(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(ssh.Keys, '_make', side_effect=['1234', '5678']):
            first, second = ssh.Keys(place + '/keys'), ssh.Keys(place + '/keys')
            self.assertEqual((first.user, first.host_public), ('1', '4'))
            self.assertEqual(vars(first), vars(second))
            self.assertEqual(os.stat(place + '/keys').st_mode & 0o777, 0o700)
            self.assertEqual({os.stat('%s/keys/%s' % (place, name)).st_mode & 0o777 for name in ssh.Keys.NAMES}, {0o600})
            os.unlink(place + '/keys/host')
            with self.assertRaisesRegex(say.LabError, 'keys: host: No such file .*; copy the whole directory'):
                ssh.Keys(place + '/keys')


class Iommu(unittest.TestCase):
    def test_it_is_as_the_guide_says(self):
        with open(paths.repo('Documentation/user/qemu.rst')) as file:
            guide = ' '.join(file.read().split())
        device = guide.split('For a virtual IOMMU, put ``-device ')[1].split('``')[0]
        words = qemu.machine('2G', ['/tmp/nic'], iommu=True)
        self.assertLess(words.index(device), words.index('-device', words.index(device)))
        self.assertNotIn(device, qemu.machine('2G', ['/tmp/nic'], iommu=False))


class KernelLog(unittest.TestCase):
    """The lines of a kernel's log that make a run fail, and others that look like them."""

    def test_faults(self):
        for line in ('[    1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2',
                     '[    1.0] BUG: KASAN: use-after-free in f',
                     '[    1.0] BUG: unable to handle page fault',
                     '[    1.0] Kernel panic - not syncing: x',
                     '[    1.0] general protection fault: 0000 [#1] PREEMPT SMP',
                     '[    1.0] general protection fault, probably for non-canonical address 0x6b6b: 0000 [#1]',
                     '[    1.0] INFO: task insmod:12 blocked for more than 60 seconds.',
                     '[    1.0] WARNING: possible circular locking dependency detected'):
            self.assertTrue(kernellog.find(line + '\n')[0], line)

    def test_no_faults(self):
        for line in ('[    1.0] skua 0000:00:04.0: up', '[    1.0] debug: WARN_ON is enabled',
                     '[    1.0] spectre: VULNERABLE',
                     '[    1.0] traps: iperf3[187] general protection fault ip:20202020 sp:7ffd error:0',
                     '[    1.0] WARNING: CPU: 0 PID: 1 at kernel/dma/debug.c:601 add_dma_entry+0x2e5/0x390',
                     '[    1.0] WARNING: CPU: 0 PID: 1 at kernel/dma/debug.c:463 add_dma_entry.isra.0+0x352/0x3b0'):
            self.assertIsNone(kernellog.find(line + '\n')[0], line)

    def test_a_lock_that_is_never_waited_for(self):
        report = ('[    1.0] WARNING: possible circular locking dependency detected\n[    1.0] 6.9 #1 Tainted: G\n'
                  '[    1.0] ------\n[    1.0] test/1 is trying to acquire lock:\n'
                  '[    1.0] ff11 (&file->disassociation_lock){+.+.}-{3:3}, at: %s+0xb7/0x150 [ib_uverbs]\n')
        self.assertIsNone(kernellog.find(report % 'rdma_umap_open')[0])
        self.assertTrue(kernellog.find(report % 'ib_uverbs_open')[0])
        self.assertTrue(kernellog.find(report % 'rdma_umap_open' + '[    1.1] BUG: KASAN: use-after-free in f\n')[0])
        self.assertTrue(kernellog.find(report.replace('disassociation_lock', 'lock') % 'rdma_umap_open')[0])
