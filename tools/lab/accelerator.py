"""KVM where it truly runs a stock kernel, else TCG.

/dev/kvm may be there, open, and still not run one, so that a kernel is tried once a boot of
the host; the answer is kept in build/.
"""

import os
import subprocess
import tempfile

import chroot
import paths
import tsc

ANSWER = os.path.join(paths.BUILD, 'accelerator')


def _probe(vmlinux):
    if not any(os.path.isdir('/sys/module/' + name) for name in ('kvm_intel', 'kvm_amd')):
        return 'tcg'
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'tcg'
    with tempfile.NamedTemporaryFile(dir=paths.BUILD) as console:
        try:
            chroot.run(['qemu-system-x86_64', '-accel', 'kvm', '-cpu', 'host', '-m', '256', '-nodefaults',
                        '-no-reboot', '-display', 'none', '-serial', 'file:' + console.name, '-kernel', vmlinux,
                        '-append', 'console=ttyS0 panic=-1'], timeout=20, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 'tcg'
        # It came as far as to find no root file system: that is a kernel that runs.
        return 'kvm' if b'Unable to mount root' in console.read() else 'tcg'


def choose(vmlinux):
    with open('/proc/sys/kernel/random/boot_id') as file:
        boot = file.read().strip()
    try:
        known, answer = open(ANSWER).read().split()
        if known == boot:
            return answer
    except (OSError, ValueError):
        pass
    answer = _probe(vmlinux)
    with open(ANSWER, 'w') as file:
        file.write('%s %s\n' % (boot, answer))
    return answer


def options(answer):
    if answer == 'kvm':
        return ['-accel', 'kvm', '-cpu', 'host']
    # Without erms, memcpy in a guest under TCG is ten times as fast as with it.
    return ['-accel', 'tcg,thread=multi', '-cpu', 'max,erms=off,fsrm=off']


def append(answer):
    """What the kernel is told."""
    frequency = tsc.khz() if answer == 'tcg' else None      # KVM has a clock of its own
    return 'tsc_early_khz=%d' % frequency if frequency else ''
