"""What the Debian root holds, by purpose. The suites are those of target/distro.py."""

from skualab.target.arch import ARCH

# From the suite's backports, with all that must be of the same version.
BACKPORTS = '%s qemu-system-common qemu-system-data qemu-utils %s' % (ARCH.emulator_package, ARCH.firmware_package)

# Compiles the modules, the provider, skuad and the programs of selftests/.
BUILD = '''
    gcc make libc6-dev dpkg-dev pkg-config cmake ninja-build git patch perl bc flex bison
    clang libclang-rt-dev sparse gdb libelf-dev
    libnl-3-dev libnl-route-3-dev libudev-dev libibverbs-dev librdmacm-dev
    libdeflate-dev libjson-c-dev liburcu-dev libcmocka-dev libpcap-dev libseccomp-dev
    libopenmpi-dev libmpich-dev librpma-dev cython3 python3-dev
'''

# Makes images, and looks at what skuad wrote.
IMAGES = '''
    erofs-utils busybox-static kmod xz-utils zstd cpio tshark python3-scapy
'''

# Makes manual pages, and plots.
DOCUMENTS = 'python3-docutils gnuplot-nox'

# What people run in guests.
GUEST = '''
    rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest python3-pyverbs python3
    iproute2 iputils-ping ethtool procps psmisc less strace tcpdump netcat-openbsd iperf3 qperf
    nfs-kernel-server nfs-common nvme-cli open-iscsi ksmbd-tools cifs-utils fio libfabric-bin ucx-utils
    openssh-server openssh-client
    openmpi-bin mpich curl socat
    pciutils util-linux bash
'''

# Documentation stays out, but for the test suites that Debian ships as such. So do the modules of the kernel on which its
# headers depend: products/kernels.py unpacks those that guests boot.
PATH_EXCLUDE = ['/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*',
                '/usr/share/doc/*', '/usr/share/lintian/*', '/usr/lib/modules/*/kernel/*']
PATH_INCLUDE = ['/usr/share/doc/rdma-core/*', '/usr/share/doc/*/copyright']

# What the chroot has and no guest needs, relative to the root (mkfs.erofs --exclude-regex).
NOT_IN_GUEST = [
    'usr/lib/llvm-[0-9]*/.*', 'usr/src/.*', 'usr/lib/linux-kbuild-.*', 'usr/lib/modules/.*',
    'usr/share/(qemu|%s|icons|cmake-.*|wireshark|i18n)/.*' % ARCH.firmware_package, 'usr/bin/qemu-.*', 'usr/bin/clang.*',
    'usr/lib/%s/(libLLVM|libclang|libwireshark|liblto).*' % ARCH.triplet, 'usr/lib/gcc/.*/lto.*',
    # libmpich-dev has them in tow: compilers of C++ and Fortran.
    'usr/bin/.*([gc][+][+]|gfortran).*', 'usr/libexec/gcc/.*/(cc1plus|f951)', 'usr/include/c[+][+]/.*',
    'usr/lib/gcc/.*/(finclude.*|lib(gfortran|caf|stdc).*)', 'usr/lib/.*/(mpich|openmpi)/.*[.](a|mod)',
    'usr/share/javascript/.*',
    'var/(cache|lib/apt)/.*', 'etc/apt/.*', 'boot/.*', '(proc|sys|dev|tmp)/.+',
]


def words(*lists):
    return [word for text in lists for word in text.split()]
