"""KVM where it truly runs a stock kernel, else TCG.

/dev/kvm may be there, open, and still not run one, so that a kernel is tried once a boot of
the host; the answer is kept in build/, with the reason where it is TCG.
"""

import os
import subprocess
import tempfile

from skualab.host import paths
from skualab.machines import counter
from skualab.roots import chroot
from skualab.target.arch import ARCH

ANSWER = os.path.join(paths.BUILD, 'accelerator')
PATIENCE = 20       # seconds for the kernel that is tried


def _lacking():
    """Why there is no use in trying, or None."""
    if not os.path.exists('/dev/kvm'):
        return '/dev/kvm does not exist: load the KVM module if the processor has virtualisation'
    if not any(os.path.isdir('/sys/module/' + name) for name in ARCH.kvm_modules):
        return 'this host has neither of the KVM modules %s' % ' and '.join(ARCH.kvm_modules)
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'this user may not open /dev/kvm: join the group kvm'
    return None


def _probe(vmlinux):
    """(why KVM is not to be used or None, whether that holds until the next boot)"""
    with tempfile.NamedTemporaryFile(dir=paths.BUILD) as console:
        try:
            done = chroot.run([ARCH.emulator, '-accel', 'kvm', '-cpu', 'host', '-m', '256', '-nodefaults',
                               '-no-reboot', '-display', 'none', '-serial', 'file:' + console.name.replace(',', ',,'),
                               '-kernel', vmlinux, '-append', 'console=%s panic=-1' % ARCH.console], timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except subprocess.TimeoutExpired:
            # The machine may only have been busy.
            return 'a kernel that was tried with KVM did not end within %d s' % PATIENCE, False
        # It came as far as to find no root file system: that is a kernel that runs.
        if b'Unable to mount root' in console.read():
            return None, True
        said = done.stderr.strip().splitlines()[-1:]
        return ': '.join(['KVM cannot run a stock kernel here', *said]), True


def choose(vmlinux):
    """(kvm or tcg, why not kvm)"""
    why = _lacking()
    if why:
        return 'tcg', why
    with open('/proc/sys/kernel/random/boot_id') as file:
        boot = file.read().strip()
    try:
        with open(ANSWER) as file:
            known, answer, why = (file.read().strip() + ' ').split(' ', 2)
        if known == boot and (answer == 'kvm' or why):
            return answer, why.strip()
    except (OSError, ValueError):
        pass
    why, holds = _probe(vmlinux)
    answer = 'tcg' if why else 'kvm'
    if holds:
        with open(ANSWER, 'w') as file:
            file.write('%s %s %s\n' % (boot, answer, why or ''))
    return answer, why or ''


def told(answer, why):
    """Both in some words."""
    return '%s: %s' % (answer, why) if why else answer


def options(answer):
    if answer == 'kvm':
        return ['-accel', 'kvm', '-cpu', 'host']
    return ['-accel', 'tcg,thread=multi', '-cpu', ARCH.cpu_of_tcg]


def append(answer):
    """What the kernel is told."""
    frequency = counter.khz() if answer == 'tcg' else None      # KVM has a clock of its own
    return ARCH.counter_option % frequency if frequency else ''
