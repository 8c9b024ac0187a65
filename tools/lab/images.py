"""What guests boot: the root's image, and a directory a kernel (make-kernel.sh)."""

import contextlib
import glob
import os
import re
import shutil
import time
from functools import partial

import apt
import chroot
import packages
import paths
import root
from stage import Stage, digest

IMAGE = os.path.join(paths.IMAGES, 'root.erofs')


def _root_stamp():
    """Changes when the root is made anew."""
    with open(root.STAGE.stamp) as file:
        return file.read() + str(os.stat(paths.ROOT).st_ino)


def _image(log):
    os.makedirs(paths.IMAGES, exist_ok=True)
    # What is mounted there while a command runs in the root is none of it.
    patterns = packages.NOT_IN_GUEST + [re.escape(paths.REPO[1:]) + '/.+']
    exclude = ' '.join('--exclude-regex=' + chroot.quote('^(%s)$' % pattern) for pattern in patterns)
    # A guest that runs keeps the file that it has open.
    chroot.run('mkfs.erofs --quiet -U clear -x -1 {0} {1}.new {2} && mv {1}.new {1}'.format(
        exclude, IMAGE, paths.ROOT),
               stdout=log, stderr=log, check=True, timeout=120)


IMAGE_STAGE = Stage('root-image', _image, lambda: [_root_stamp(), *packages.NOT_IN_GUEST], IMAGE, 60)


def kernel(series):
    return os.path.join(paths.KERNELS, series)


def _fetch(series, log):
    """The packages of a kernel."""
    apt.update(log)
    # What older releases have in one package, newer ones have in several.
    parts = apt.names(r'linux-(image|binary|modules|base)-' + root.releases()[series].replace('+', r'\+'))
    return apt.download(parts, log)


def _fetch_source(log):
    apt.update(log)
    return apt.download(['linux-source-' + root.SERIES[0]], log)


def _debian(series):
    """Make of Debian's packages what guests boot."""
    def make(log):
        files = _fetch(series, log)
        tree, out = kernel(series) + '.tree', kernel(series)
        shutil.rmtree(tree, ignore_errors=True)
        script = ['mkdir -p %s' % tree] + ['dpkg-deb -x %s %s' % (chroot.quote(name), tree) for name in files]
        script += ['image=$(ls {0}/boot/vmlinuz-* {0}/usr/lib/modules/*/vmlinuz 2>/dev/null | head -n 1)'.format(tree),
                   '%s "$image" %s %s.new' % (paths.lab('make-kernel.sh'), tree, out)]
        chroot.run('\n'.join(script).replace('\nimage=', '\nset +o pipefail\nimage='),
                   stdout=log, stderr=log, check=True, timeout=180)
        shutil.rmtree(tree)
        shutil.rmtree(out, ignore_errors=True)
        os.rename(out + '.new', out)
    return make


def _debug(log):
    """Build the kernel that finds faults; what is left of an earlier build is made use of."""
    package, = _fetch_source(log)
    chroot.run([paths.lab('make-debug-kernel.sh'), package, paths.lab('debug.config'), DEBUG_BUILD],
               stdout=log, stderr=log, check=True, timeout=DEBUG_SECONDS)
    chroot.run([paths.lab('make-kernel.sh'), DEBUG_BUILD + '/bzImage', DEBUG_BUILD, kernel('debug')],
               stdout=log, stderr=log, check=True, timeout=180)


DEBUG_BUILD = kernel('debug') + '.build'
DEBUG_SECONDS = 2400
KERNEL_STAGES = {
    series: Stage('kernel-' + series, _debian(series),
                  lambda series=series: [root.releases()[series], paths.lab('make-kernel.sh')],
                  os.path.join(kernel(series), 'modules.erofs'), 90, partial(_fetch, series))
    for series in root.SERIES}
KERNEL_STAGES['debug'] = Stage(
    'kernel-debug', _debug,
    lambda: [root.releases()[root.SERIES[0]], *map(paths.lab, ('debug.config', 'make-debug-kernel.sh', 'make-kernel.sh'))],
    os.path.join(kernel('debug'), 'modules.erofs'), DEBUG_SECONDS + 300, _fetch_source)


def custom(image, modules):
    """A kernel of the user's: the directory that guests boot, and the modules' own tree."""
    image = os.path.realpath(image)
    tree = os.path.realpath(modules) if modules else '-'
    stat = [os.stat(image).st_mtime_ns]
    if modules:
        stat += [os.stat(name).st_mtime_ns for name in glob.glob(tree + '/lib/modules/*/modules.dep')]
    name = 'custom-' + digest(image, tree, *stat)[:12]
    out = kernel(name)

    def make(log):
        chroot.run([paths.lab('make-kernel.sh'), image, tree, out], stdout=log, stderr=log, check=True,
                   binds=[os.path.dirname(image)] + ([tree] if modules else []), timeout=180)
    Stage('kernel-' + name, make, lambda: [image, tree, *stat, paths.lab('make-kernel.sh')],
          out + '/modules.erofs', 180).run()
    os.utime(out)
    _prune(out)
    return out


KEEP = 4            # kernels of the user's that nobody has booted for a day


def _prune(current):
    """The oldest go, with what is known of them. A guest that runs keeps the files that it has open."""
    old = sorted((path for path in glob.glob(kernel('custom-*')) if path != current), key=os.path.getmtime)
    for path in old[:-KEEP]:
        if time.time() - os.path.getmtime(path) > 86400:
            shutil.rmtree(path, ignore_errors=True)
            name = 'kernel-' + os.path.basename(path)
            for left in (os.path.join(paths.STAMPS, name), os.path.join(paths.LOGS, name + '.log')):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(left)
