"""The architecture of guests. The host has the same, since the programs of the root run on it."""


class Arch:
    """An architecture: all that the lab has to know of one stands here."""

    def __init__(self, **facts):
        self.__dict__.update(facts)


AMD64 = Arch(
    name='x86_64',                      # uname -m
    debian='amd64',                     # Debian's name
    triplet='x86_64-linux-gnu',         # of directories of libraries
    kernel_image='arch/x86/boot/bzImage',   # what a build of the kernel leaves to be booted

    elf_machine=62,

    emulator='qemu-system-x86_64',
    emulator_package='qemu-system-x86',
    firmware_package='seabios',
    machine='q35',
    machine_options='hpet=off',
    iommu='intel-iommu,intremap=off,caching-mode=on',
    console='ttyS0',
    append='tsc=reliable no_timer_check',
    # Without erms, memcpy in a guest under TCG is ten times as fast as with it. Without la57 there is no moment at boot
    # in which an interrupt makes KASAN take good addresses for bad ones: Linux forgets the features of its processor
    # while it identifies it, and by that one KASAN finds the shadow of memory.
    cpu_of_tcg='max,erms=off,fsrm=off,la57=off',
    kvm_modules=('kvm_intel', 'kvm_amd'),

    # The time stamp counter, which a guest under TCG shares with the host: machine code that returns it (rdtsc;
    # shl $32, %rdx; or %rdx, %rax; ret), and how the kernel is told its frequency.
    read_counter=bytes.fromhex('0f31 48c1e220 4809d0 c3'),
    counter_option='tsc_early_khz=%d',

    # System calls, for filters of them: the number that the kernel gives the architecture, the first number of calls
    # of another ABI, and the numbers of calls that give a file its mode.
    audit=0xc000003e,
    other_abi=0x40000000,
    calls={'open': 2, 'creat': 85, 'chmod': 90, 'fchmod': 91, 'mknod': 133, 'openat': 257, 'mknodat': 259,
           'fchmodat': 268, 'fchmodat2': 452},
)
ARCH = AMD64
