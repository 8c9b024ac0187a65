"""Where things are. Everything that is fetched or built lies under build/."""

import os
import re

from skualab.host.say import LabError

LAB = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
REPO = os.path.dirname(os.path.dirname(LAB))
BUILD = os.path.abspath(os.environ.get('SKUA_BUILD') or os.path.join(REPO, 'build'))
if os.environ.get('SKUA_BUILD'):
    os.environ['SKUA_BUILD'] = BUILD        # of labs that we start elsewhere

APT = os.path.join(BUILD, 'apt')            # package lists and fetched packages: what `lab cache` keeps
ROOT = os.path.join(BUILD, 'root')          # the Debian root: chroot, guest and home of QEMU
IMAGES = os.path.join(BUILD, 'images')      # root.erofs, initramfs
KERNELS = os.path.join(BUILD, 'kernels')    # by series: vmlinux, modules.erofs, release
MODULES = os.path.join(BUILD, 'modules')    # by series: skua.ko, skua_ib.ko
SOURCES = os.path.join(BUILD, 'src')        # unpacked: rdma-core, linux-SERIES
PROVIDER = os.path.join(BUILD, 'provider')  # libskua and skua.driver
SKUAD = os.path.join(BUILD, 'skuad')        # skuad, skuactl and their tests
TRAFFIC = os.path.join(BUILD, 'traffic')    # rdma_traffic, listen_first.so
SELFTESTS = os.path.join(BUILD, 'selftests')    # installed: a guest's share
STAMPS = os.path.join(BUILD, 'stamps')      # what each stage was last made from
LOGS = os.path.join(BUILD, 'log')           # what each stage printed
RUNS = os.path.join(BUILD, 'run')           # one directory a guest


def repo(*parts):
    return os.path.join(REPO, *parts)


def lab(*parts):
    return os.path.join(LAB, *parts)


def usable():
    """make and the kernel's build cannot handle every name."""
    for what, path, how in (('repository', REPO, 'move it'), ('build directory', BUILD, 'set SKUA_BUILD to another path')):
        wrong = sorted(set(re.sub(r'[\w@+=,./~-]', '', path)))
        if wrong:
            raise LabError("the path of the %s, %s, has characters that make cannot handle ('%s'); %s" % (
                what, path, ''.join(wrong), how))
