"""The distribution that roots are made of. Suites are named by role."""

from skualab.target.arch import ARCH


class Distro:
    """A distribution: all that the lab has to know of one stands here."""

    def __init__(self, **facts):
        self.__dict__.update(facts)

    @property
    def kernel(self):
        """The series of the kernel that guests boot unless told otherwise."""
        return self.series[0]

    @property
    def newest(self):
        return self.series[-1]

    @property
    def rdma_cores(self):
        """The rdma-cores that libskua is for: by role, the suite that has it. The first one is the root's."""
        return {'stable': self.stable, 'testing': self.testing}

    @property
    def rdma_core(self):
        """The role of the root's."""
        return next(iter(self.rdma_cores))


DEBIAN = Distro(
    stable='trixie',
    updates='trixie-updates',
    backports='trixie-backports',
    testing='forky',            # sources only: nothing of it is installed
    components='main',
    keyring='/usr/share/keyrings/debian-archive-keyring.gpg',
    keyring_package='debian-archive-keyring',

    # Of kernels there is an older series, which the root's own headers and tools are of, and a newer one.
    series=('6.12', '7.2'),
    image_package='linux-image-',       # RELEASE, which ends in the architecture's name
    debug_package='linux-image-%s-dbg',    # RELEASE
    image_release=r'\d[^-]*(-\d+)?-' + ARCH.debian,
    # What older releases have in one package, newer ones have in several.
    kernel_packages='linux-(image|binary|modules|base)-',
    headers_package='linux-headers-',   # RELEASE
    headers='/usr/src/linux-headers-',  # RELEASE
    source_package='linux-source-',     # SERIES
    kbuild='/usr/lib/linux-kbuild-',    # SERIES, and more
)
DISTRO = DEBIAN
