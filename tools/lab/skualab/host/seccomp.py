"""A filter of system calls: nothing can make a setuid or setgid file, or a device."""

import ctypes
import os
import struct

from skualab.target.arch import ARCH

# Calls that give a file its mode: which argument is the mode, which are the flags, and what a mode must not have:
# setuid and setgid, and where files are made by type, character and block devices.
SETUID = 0o6000
DEVICE = 0o020000
CALLS = {'chmod': (1, None, SETUID), 'fchmod': (1, None, SETUID), 'fchmodat': (2, None, SETUID),
         'fchmodat2': (2, None, SETUID), 'open': (2, 1, SETUID), 'openat': (3, 2, SETUID), 'creat': (1, None, SETUID),
         'mknod': (1, None, SETUID | DEVICE), 'mknodat': (2, None, SETUID | DEVICE)}
CREATES = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)


def no_setuid():
    """Have the kernel refuse these calls, with EPERM, from here on."""
    load, equal, greater, any_bit, done = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse = (done, 0, 0, 0x7fff0000), (done, 0, 0, 0x00050001)
    program = [(load, 0, 0, 4), (equal, 1, 0, ARCH.audit), refuse,
               (load, 0, 0, 0), (greater, 0, 1, ARCH.other_abi), refuse]
    for name, number in ARCH.calls.items():
        mode, flags, bits = CALLS[name]
        rule = [(load, 0, 0, 16 + 8 * mode), (any_bit, 0, 1, bits), refuse, allow]
        if flags is not None:       # without these flags the mode is not looked at, and may be anything
            rule = [(load, 0, 0, 16 + 8 * flags), (any_bit, 1, 0, CREATES), allow, *rule]
        program += [(equal, 0, len(rule), number), *rule]
    code = b''.join(struct.pack('HBBI', *one) for one in [*program, allow])
    memory = ctypes.create_string_buffer(code)
    head = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(memory)))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, head, 0, 0):      # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), 'no filter of system calls: %s' % os.strerror(ctypes.get_errno()))
