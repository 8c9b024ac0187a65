"""The frequency of the host's time stamp counter, which a guest under TCG has, too.

A guest's kernel calibrates its counter by QEMU's timer. On a busy host that has gone wrong: a clock was six times as
fast as time, and timeouts came as much too early. So the kernel is told.
"""

import ctypes
import mmap
import platform
import time

from skualab.target.arch import ARCH

def khz(seconds=0.05):
    """None where it cannot be measured."""
    if platform.machine() != ARCH.name:
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:         # a host where no page is writable and executable
        return None
    page.write(ARCH.read_counter)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    start, first = _look(read)
    time.sleep(seconds)
    end, last = _look(read)
    return (last - first) * 1000000 // (end - start)


def _look(read):
    """(ns, ticks) at one time: of some looks the one that took least, as others may have been interrupted."""
    looks = []
    for _ in range(9):
        before, ticks, after = time.monotonic_ns(), read(), time.monotonic_ns()
        looks.append((after - before, before, ticks))
    return min(looks)[1:]
