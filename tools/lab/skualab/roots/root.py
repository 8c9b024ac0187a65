"""The Debian root, made by mmdebstrap from build/apt's lists: chroot, guest and home of QEMU.

The releases of the kernels are chosen here, by series, because their headers are part of the
root; they are written down in build/kernels/chosen for everything that follows. Their packages are
fetched with those of the root.
"""

import json
import os
import shlex
import subprocess

from skualab.host import needs, paths, say, secrets, settings
from skualab.roots import apt, chroot, mirror, packages
from skualab.roots.stage import Stage
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO

CHOSEN = os.path.join(paths.KERNELS, 'chosen')
VERSIONS = os.path.join(paths.BUILD, 'versions')    # every package of the root

# Seen by person and CI log alike: the versions that decide whether a result can be compared.
TOLD = (ARCH.emulator_package, 'rdma-core', 'perftest', 'gcc')


def releases():
    """The kernels' releases by series, as chosen when the root was made."""
    with open(CHOSEN) as file:
        return json.load(file)


def _inputs():
    return [DISTRO.stable, DISTRO.backports, *packages.words(packages.BACKPORTS, packages.BUILD,
            packages.IMAGES, packages.DOCUMENTS, packages.GUEST), *packages.PATH_EXCLUDE, *packages.PATH_INCLUDE,
            *DISTRO.series]


def _hooks():
    """Shell hooks of mmdebstrap; $1 is the new root. Packages go in and out by hard link."""
    archives = shlex.quote(apt.ARCHIVES)
    lists = shlex.quote(apt.LISTS)
    debs = '"$1"/var/cache/apt/archives/'
    setup = ('mkdir -p %s "$1"/var/lib/apt/lists; cp -r %s/*_* "$1"/var/lib/apt/lists/; '
             'for f in %s/*.deb; do [ ! -e "$f" ] || cp -l "$f" %s 2>/dev/null || cp "$f" %s; done'
             % (debs, lists, archives, debs, debs))
    keep = ('for f in %s*.deb; do [ ! -e "$f" ] || cp -ln "$f" %s/ 2>/dev/null || cp -n "$f" %s/; done; '
            'rm -f %s*.deb' % (debs, archives, archives, debs))
    # Test suites are shipped gzipped, as documentation is.
    suites = 'find "$1"/usr/share/doc/rdma-core/tests -name "*.gz" -exec gunzip -f {} +'
    # openssh-server makes keys when it is installed; guests get keys of their run (machines/ssh.py).
    keys = 'rm -f "$1"/etc/ssh/ssh_host_*'
    # A kernel comes with its headers, and would get an initramfs, in a fifth of all the time that a root takes.
    initramfs = ('chroot "$1" dpkg-divert --local --rename --add /usr/sbin/update-initramfs && '
                 'ln -s /bin/true "$1"/usr/sbin/update-initramfs')
    return ['--setup-hook=' + setup, '--essential-hook=' + initramfs,
            *('--customize-hook=' + hook for hook in (keep, suites, keys))]


def _before(log):
    needs.ready(log)
    if not settings.offline:
        say.line('mirror: %s' % secrets.hide(mirror.uri()))
    apt.update(log)
    kernels = _kernels()
    apt.fetch(_packages(kernels), log)
    # Their headers are part of the root, and tomorrow the mirror may have other kernels.
    for release in kernels.values():
        apt.kernel_packages(release, log)


def _kernels():
    return {series: apt.kernel(series) for series in DISTRO.series}


def _packages(kernels):
    backports = ['%s/%s' % (name, DISTRO.backports) for name in packages.words(packages.BACKPORTS)]
    return backports + packages.words(packages.BUILD, packages.IMAGES, packages.DOCUMENTS, packages.GUEST) \
        + [DISTRO.headers_package + release for release in kernels.values()]


def _make(log):
    chosen = _kernels()
    include = _packages(chosen)
    chroot.remove(paths.ROOT, log)
    os.makedirs(paths.KERNELS, exist_ok=True)
    options = ['force-unsafe-io', *('path-exclude=' + path for path in packages.PATH_EXCLUDE),
               *('path-include=' + path for path in packages.PATH_INCLUDE)]
    with open(apt.SOURCES) as file:
        # An earlier lab wrote a password there.
        sources = [text for text in secrets.hide(file.read(), '').splitlines() if text.startswith('deb ')]
    # What it mounts ends with it, and what it started, however it ends.
    own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'] if os.geteuid() == 0 else []
    subprocess.run(
        [*own, 'mmdebstrap', '--variant=minbase', '--architectures=' + ARCH.debian,
         '--skip=update,cleanup/apt,essential/unlink', '--skip=download/empty', *_hooks(),
         *('--dpkgopt=' + text for text in options),
         '--include=' + ','.join(include), '', paths.ROOT, '-'],
        input='\n'.join(sources) + '\n', text=True, stdout=log, stderr=log, check=True, timeout=STAGE.budget)
    with open(VERSIONS, 'w') as file:
        subprocess.run(['dpkg-query', '--admindir=' + paths.ROOT + '/var/lib/dpkg', '-W'],
                       stdout=file, check=True)
    with open(CHOSEN, 'w') as file:
        json.dump(chosen, file)
    apt.prune(log)
    say.line(told())


def told():
    """The versions in use, in one line."""
    have = dict(text.split('\t') for text in open(VERSIONS).read().splitlines())
    have = {name.split(':')[0]: number for name, number in have.items()}
    return ', '.join(['kernels ' + ' and '.join(releases().values())]
                     + ['%s %s' % (name, have[name]) for name in TOLD])


STAGE = Stage('root', _make, _inputs, paths.ROOT, 900, _before)
