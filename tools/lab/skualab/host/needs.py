"""What the lab needs of the host: what is missing, and its installation where nobody has to be asked."""

import os
import shutil
import subprocess

from skualab.host import namespaces, say, settings
from skualab.host.say import LabError
from skualab.target.distro import DISTRO

# program -> the Debian package that brings it
NEEDED = {'mmdebstrap': 'mmdebstrap', 'apt-get': 'apt', 'unshare': 'util-linux', 'dpkg-query': 'dpkg',
          'mount': 'mount', 'chroot': 'coreutils'}


def _found(program):
    return shutil.which(program, path=os.environ.get('PATH', '/usr/bin:/bin') + ':/usr/sbin:/sbin')


def lacking():
    """What is missing, and the packages that bring it: {name: package}."""
    needed = dict(NEEDED)
    if os.geteuid() != 0:
        needed['newuidmap'] = 'uidmap'
    missing = {program: package for program, package in needed.items() if not _found(program)}
    if not os.path.exists(DISTRO.keyring):
        missing[DISTRO.keyring] = DISTRO.keyring_package
    return missing


def _sudo():
    """The words that make a command root's without a question, or None."""
    if os.geteuid() == 0:
        return []
    if _found('sudo') and subprocess.run(['sudo', '-n', 'true'], stdin=subprocess.DEVNULL,
                                         capture_output=True).returncode == 0:
        return ['sudo', '-n']
    return None


def programs(log):
    """Install what is missing, or say which command does."""
    missing = sorted(set(lacking().values()))
    if not missing:
        return
    if not _found('apt-get'):
        raise LabError('this host has no apt-get; use a Debian or Ubuntu host, or a container of one')
    install = ['apt-get', 'install', '-y', '--no-install-recommends', *missing]
    become = 'sudo ' if os.geteuid() != 0 and _found('sudo') else ''
    command = '%sapt-get update && %s%s' % (become, become, ' '.join(install))
    command = command if become or os.geteuid() == 0 else 'as root: ' + command
    sudo = None if settings.offline else _sudo()
    if sudo is None:
        raise LabError('this host lacks %s; install what is missing with: %s' % (', '.join(missing), command))
    say.line('installing on this host: %s' % ', '.join(missing))
    env = ['env', 'DEBIAN_FRONTEND=noninteractive']
    wait = ['-o', 'DPkg::Lock::Timeout=120']        # another apt may be at work
    # One source of several may be dead, and the packages still be there.
    for words, must in (['apt-get', *wait, 'update'], False), ([install[0], *wait, *install[1:]], True):
        done = subprocess.run([*sudo, *env, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if must and (done.returncode or lacking()):
            raise LabError('apt-get did not install %s; its log is %s, and this command shows the reason: %s' % (
                ', '.join(missing), log.name, command))


def rights():
    """Why nothing can be mounted and what to do, or None."""
    words = namespaces.unshare()
    done = subprocess.run(words + ['sh', '-c', 'mount -t tmpfs lab /mnt && mount -t proc proc /proc'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not done.returncode:
        return None
    reason = (done.stderr.strip().splitlines() or ['no reason given'])[-1]
    if os.geteuid() == 0:
        return ('root may not mount file systems here (%s); '
                'start the container with CAP_SYS_ADMIN, or with --privileged' % reason)
    return ('this user may not make user namespaces (%s); run the lab as root, or allow them with sysctl '
            'kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0, '
            'and with a range for this user in /etc/subuid and /etc/subgid' % reason)


def ready(log):
    """Programs and rights to make a root with; LabError says what is missing."""
    programs(log)
    missing = rights()
    if missing:
        raise LabError(missing)
