"""Run a command in the Debian root, with the repository at its own path.

The command gets mount and process namespaces of its own, so that no mount outlives it and
nothing it started does either. As root that is all; without rights a user namespace is made
too, which needs a range of subordinate ids (see `lab doctor`).
"""

import os
import re
import shlex
import subprocess

from skualab.host import namespaces, paths
from skualab.host.say import LabError

# $1 is the root; the rest of the arguments that end in -- are bind mounts; then the command.
SETUP = r'''
set -e
root=$1; shift
# A process whose / is no mount point cannot have namespaces of its own, and the lab may be started there.
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount --bind /sys "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys" 2>/dev/null || :
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs run "$root/run"
while [ "$1" != -- ]; do
	mkdir -p "$root$1"
	mount --rbind "$1" "$root$1"
	shift
done
shift
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/run/resolv.conf"
exec chroot "$root" /usr/bin/env -i "$@"
'''

ENVIRONMENT = {
    'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root', 'LANG': 'C.UTF-8',
    'TERM': os.environ.get('TERM', 'dumb'),
    'GIT_CONFIG_COUNT': '1', 'GIT_CONFIG_KEY_0': 'safe.directory', 'GIT_CONFIG_VALUE_0': '*',
}


# What the root has itself. The host's in its place would leave the root without its programs, libraries or mounts.
NEEDED = re.compile(r'/|/(bin|dev|etc|lib(32|64|x32)?|proc|run|sbin|sys|usr|var)|'
                    r'/usr/(bin|include|sbin|share|lib(32|64|x32|exec)?(/\w+-linux-gnu\w*)?)')


def needed(path):
    """Whether the host's directory would cover what the root needs."""
    return bool(NEEDED.fullmatch(path))


def words(command, cwd=None, binds=(), env=None, root=None):
    """The whole command line that runs `command` in the root. cwd is bound, too, unless the root needs its own."""
    places = []
    for place in [paths.REPO, paths.BUILD, *binds, *([cwd] if cwd and not needed(cwd) else [])]:
        if place == '/':
            raise LabError('/ of this host cannot be bound, as it would cover the Debian root; choose one below')
        if not any(place == other or place.startswith(other + '/') for other in places):
            places.append(place)
    environment = dict(ENVIRONMENT, **(env or {}))
    inner = ['sh', '-c', 'cd "$0" && exec "$@"', cwd or paths.REPO, *command]
    # chroot is an administrator's program, for which the path of another user need not be.
    path = os.environ.get('PATH', '/usr/bin:/bin') + ':/usr/sbin:/sbin'
    return ['env', 'PATH=' + path, *namespaces.unshare(), 'sh', '-c', SETUP, 'chroot', root or paths.ROOT, *places, '--',
            *('%s=%s' % item for item in environment.items()), *inner]


def run(command, cwd=None, binds=(), env=None, **kwargs):
    """Run and wait. A string is a shell command."""
    if isinstance(command, str):
        command = ['bash', '-euo', 'pipefail', '-c', command]
    return subprocess.run(words(command, cwd, binds, env), **kwargs)


def remove(path, log):
    """Remove a tree that was made here. Without root its files belong to subordinate ids, which a plain rm may
    not remove."""
    own = [] if os.geteuid() == 0 else namespaces.unshare()
    subprocess.run([*own, 'rm', '-rf', '--one-file-system', path], stdout=log, stderr=log, check=True)


def quote(*args):
    return ' '.join(shlex.quote(str(arg)) for arg in args)
