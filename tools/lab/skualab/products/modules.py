"""The kernel modules, for each kernel.

Assumed: drivers/build-modules HEADERS OUT [MAKE ARGUMENTS] leaves OUT/MODULE.ko, each of MODULES.
"""

import os

from skualab.host import paths
from skualab.products import images, kernels
from skualab.roots import chroot, root
from skualab.roots.stage import Stage
from skualab.target.distro import DISTRO

MODULES = ('skua', 'skua_ib', 'skua_selftest', 'skua_exporter')
WARNINGS = 'W=1e'        # each is an error
INPUTS = [paths.repo(name) for name in ('Kbuild', 'drivers', 'include', 'selftests/kernel', 'uapi')]


def headers(series):
    """What modules for a kernel are built against."""
    if series in kernels.DEBUG:
        return kernels.debug_build(series) + '/build'
    return DISTRO.headers + root.releases()[series]


def directory(series):
    return os.path.join(paths.MODULES, series)


def build_directory(series):
    return directory(series) + '.build'


def _modules(series):
    def make(log):
        # The debug kernels' own configuration has no debugging information, which would double the time of its build.
        chroot.run([paths.repo('drivers/build-modules'), headers(series), build_directory(series),
                    'KCFLAGS=-g' if series in kernels.DEBUG else WARNINGS],
                   stdout=log, stderr=log, check=True, timeout=300)
        os.makedirs(directory(series), exist_ok=True)
        for name in (module + '.ko' for module in MODULES):
            # Without debugging information they load faster; it stays in the build directory.
            chroot.run(['strip', '--strip-debug', '-o', os.path.join(directory(series), name),
                        os.path.join(build_directory(series), name)], stdout=log, stderr=log, check=True)
    return make


STAGES = {
    series: Stage('modules-' + series, _modules(series),
                  lambda series=series: [*INPUTS, WARNINGS, headers(series), images.root_stamp()],
                  os.path.join(directory(series), 'skua_ib.ko'), 300)
    for series in kernels.STAGES}
