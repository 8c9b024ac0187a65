"""The kernels that guests boot: a directory each (in-root/make-kernel.sh)."""

import contextlib
import glob
import os
import shutil
import time
from functools import partial

from skualab.host import paths
from skualab.roots import apt, chroot, root
from skualab.roots.stage import content, digest, Stage
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO

MAKE = paths.lab('in-root/make-kernel.sh')
MAKE_DEBUG = paths.lab('in-root/make-debug-kernel.sh')
# The kernels that find faults: by name, the series of each.
DEBUG = {'debug': DISTRO.kernel, 'debug-' + DISTRO.newest: DISTRO.newest}


def directory(series):
    return os.path.join(paths.KERNELS, series)


def _fetch(series, log):
    """The packages of a kernel, which came with the root, unless an earlier lab made it."""
    release = root.releases()[series]
    files = apt.kept_kernel_packages(release)
    if not files:
        apt.update(log)
        files = apt.kernel_packages(release, log)
    return files


def _fetch_source(series, log):
    apt.update(log)
    return apt.download([DISTRO.source_package + series], log)


def _debian(series):
    """Make of Debian's packages what guests boot."""
    def make(log):
        files = _fetch(series, log)
        tree, out = directory(series) + '.tree', directory(series)
        shutil.rmtree(tree, ignore_errors=True)
        script = ['mkdir -p %s' % tree] + ['dpkg-deb -x %s %s' % (chroot.quote(name), tree) for name in files]
        script += ['image=$(ls {0}/boot/vmlinuz-* {0}/usr/lib/modules/*/vmlinuz 2>/dev/null | head -n 1)'.format(tree),
                   '%s "$image" %s %s.new' % (MAKE, tree, out)]
        chroot.run('\n'.join(script).replace('\nimage=', '\nset +o pipefail\nimage='),
                   stdout=log, stderr=log, check=True, timeout=180)
        shutil.rmtree(tree)
        shutil.rmtree(out, ignore_errors=True)
        os.rename(out + '.new', out)
    return make


def debug_build(name):
    """Where a kernel that finds faults was built."""
    return directory(name) + '.build'


def _debug_configs(name):
    return [paths.lab('in-root/debug%s.config' % tail) for tail in ('', '-' + DEBUG[name])]


def debug_inputs(name):
    """The files that such a kernel is made by."""
    return [*_debug_configs(name), MAKE_DEBUG]


def _debug(name):
    """Build a kernel that finds faults; what is left of an earlier build is made use of."""
    def make(log):
        package, = _fetch_source(DEBUG[name], log)
        build = debug_build(name)
        chroot.run([MAKE_DEBUG, package, ARCH.kernel_image, build, *_debug_configs(name)],
                   stdout=log, stderr=log, check=True, timeout=DEBUG_SECONDS)
        chroot.run([MAKE, build + '/image', build, directory(name)], stdout=log, stderr=log, check=True, timeout=180)
    return make


DEBUG_SECONDS = 3600
STAGES = {
    series: Stage('kernel-' + series, _debian(series),
                  lambda series=series: [root.releases()[series], content(MAKE)],
                  os.path.join(directory(series), 'modules.erofs'), 90, partial(_fetch, series))
    for series in DISTRO.series}
STAGES.update({
    name: Stage('kernel-' + name, _debug(name),
                lambda name=name: [root.releases()[DEBUG[name]], *map(content, (*debug_inputs(name), MAKE))],
                os.path.join(directory(name), 'modules.erofs'), DEBUG_SECONDS + 300,
                partial(_fetch_source, DEBUG[name]))
    for name in DEBUG})


def custom(image, modules):
    """A kernel of the user's: the directory that guests boot, and the modules' own tree."""
    image = os.path.realpath(image)
    tree = os.path.realpath(modules) if modules else '-'
    stat = [os.stat(image).st_mtime_ns]
    if modules:
        stat += [os.stat(name).st_mtime_ns for name in glob.glob(tree + '/lib/modules/*/modules.dep')]
    name = 'custom-' + digest(image, tree, *stat)[:12]
    out = directory(name)

    def make(log):
        chroot.run([MAKE, image, tree, out], stdout=log, stderr=log, check=True,
                   binds=[os.path.dirname(image)] + ([tree] if modules else []), timeout=180)
    Stage('kernel-' + name, make, lambda: [image, tree, *stat, content(MAKE)],
          out + '/modules.erofs', 180).run()
    os.utime(out)
    _prune(out)
    return out


KEEP = 4            # kernels of the user's that nobody has booted for a day


def _prune(current):
    """The oldest go, with what is known of them. A guest that runs keeps the files that it has open."""
    old = sorted((path for path in glob.glob(directory('custom-*')) if path != current), key=os.path.getmtime)
    for path in old[:-KEEP]:
        if time.time() - os.path.getmtime(path) > 86400:
            shutil.rmtree(path, ignore_errors=True)
            name = 'kernel-' + os.path.basename(path)
            for left in (os.path.join(paths.STAMPS, name), os.path.join(paths.LOGS, name + '.log')):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(left)
