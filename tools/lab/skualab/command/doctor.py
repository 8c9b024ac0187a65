"""lab doctor: what this machine lacks to run the lab, and what brings it."""

import os

from skualab.host import needs, paths, secrets, settings
from skualab.host.say import LabError
from skualab.machines import accelerator
from skualab.products import kernels
from skualab.roots import mirror
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO

SPACE = 8       # GiB under build/
MEMORY = 4      # GiB for one guest and a build


def _programs():
    for name, package in needs.lacking().items():
        yield '%s is not installed: apt-get install %s' % (name, package)


def _rights():
    if 'unshare' not in needs.lacking():
        yield from filter(None, [needs.rights()])


def _mirror():
    if settings.offline:
        return
    try:
        print('mirror: %s' % secrets.hide(mirror.uri()))
    except LabError as error:
        yield str(error)


def _machine():
    if os.uname().machine != ARCH.name:
        yield 'this host is {0}; the lab boots {1} guests, and needs an {1} host'.format(os.uname().machine, ARCH.name)
    os.makedirs(paths.BUILD, exist_ok=True)
    disk = os.statvfs(paths.BUILD)
    free = disk.f_bavail * disk.f_frsize / 2**30
    used = os.path.isdir(paths.ROOT)
    print('disk: %.0f GiB free' % free)
    if free < SPACE and not used:
        yield '%s has %.0f GiB of free space, and the lab needs %d: make room, or set SKUA_BUILD=DIR' % (
            paths.BUILD, free, SPACE)
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30
    print('memory: %.0f GiB, processors: %d' % (memory, os.cpu_count()))
    if memory < MEMORY:
        yield 'this host has %.1f GiB of memory, and the lab needs %d' % (memory, MEMORY)


def _accelerator():
    vmlinux = os.path.join(kernels.directory(DISTRO.kernel), 'vmlinux')
    if not os.path.exists(vmlinux):
        print('accelerator: not known before the first build of a kernel')
        return
    print('accelerator: %s' % accelerator.told(*accelerator.choose(vmlinux)))


def missing():
    """Each a line that says what is missing and what to do."""
    return [text for look in (_programs, _rights, _mirror, _machine) for text in look()]


def doctor():
    lacks = missing()
    if not lacks:
        _accelerator()
    for text in lacks:
        print('missing: %s' % text)
    print('nothing is missing' if not lacks else '%d missing' % len(lacks))
    return 1 if lacks else 0
