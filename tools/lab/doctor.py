"""lab doctor: what this machine lacks to run the lab, and what brings it."""

import os
import shutil
import subprocess

import mirror
import paths
from say import LabError

# program -> package that brings it on Debian
NEEDED = {'mmdebstrap': 'mmdebstrap', 'apt-get': 'apt', 'unshare': 'util-linux', 'dpkg-query': 'dpkg',
          'mount': 'mount', 'chroot': 'coreutils'}
SPACE = 8       # GiB under build/
MEMORY = 4      # GiB for one guest and a build


def _programs():
    for program, package in NEEDED.items():
        if not shutil.which(program, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin'):
            yield 'no %s: apt-get install %s' % (program, package)
    if not os.path.exists(mirror.KEYRING):
        yield 'no %s: apt-get install debian-archive-keyring' % mirror.KEYRING


def _rights():
    words = ['unshare', '--mount', '--pid', '--fork']
    if os.geteuid() != 0:
        words += ['--user', '--map-root-user', '--map-auto']
        if not shutil.which('newuidmap'):
            yield 'no newuidmap: as root, apt-get install uidmap; or run as root'
    done = subprocess.run(words + ['sh', '-c', 'mount -t tmpfs lab /mnt && mount -t proc proc /proc'],
                          capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ['no reason given'])[-1]
        if os.geteuid() == 0:
            yield ('no right to mount (%s): this is a container without CAP_SYS_ADMIN; '
                   'it needs that, or --privileged' % reason)
        else:
            yield ('no unprivileged user namespaces (%s): allow them (sysctl '
                   'kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; '
                   'a range for you in /etc/subuid and /etc/subgid), or run as root' % reason)


def _mirror():
    try:
        print('mirror: %s' % mirror.uri())
    except LabError as error:
        yield str(error)


def _machine():
    if os.uname().machine != 'x86_64':
        yield 'this is %s: the lab boots x86_64 guests and needs an x86_64 host' % os.uname().machine
    os.makedirs(paths.BUILD, exist_ok=True)
    disk = os.statvfs(paths.BUILD)
    free = disk.f_bavail * disk.f_frsize / 2**30
    used = os.path.isdir(paths.ROOT)
    print('disk: %.0f GiB free' % free)
    if free < SPACE and not used:
        yield '%.0f GiB free in %s: %d are needed' % (free, paths.BUILD, SPACE)
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30
    print('memory: %.0f GiB, processors: %d' % (memory, os.cpu_count()))
    if memory < MEMORY:
        yield '%.1f GiB of memory: %d are needed' % (memory, MEMORY)


def _accelerator():
    import accelerator
    import images
    vmlinux = os.path.join(images.kernel('6.12'), 'vmlinux')
    if not os.path.exists(vmlinux):
        print('accelerator: known once a kernel is there')
        return
    answer = accelerator.choose(vmlinux)
    print('accelerator: %s' % ('KVM' if answer == 'kvm' else 'TCG (no KVM that runs a stock kernel)'))


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
