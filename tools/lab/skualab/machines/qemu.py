"""The command line of a guest's QEMU."""

import os

from skualab.host import paths
from skualab.target.arch import ARCH

APPEND = ('console=%s quiet panic=-1 oops=panic %s mitigations=off nokaslr '
          'random.trust_cpu=on rcupdate.rcu_expedited=1 rcupdate.rcu_cpu_stall_timeout=60 '
          'cryptomgr.notests net.ifnames=0 selinux=0 apparmor=0 audit=0 swiotlb=noforce' % (ARCH.console, ARCH.append))
SKUAD_PORT = 'skuad'        # straight to skuad's control socket: skuactl's, in the guest


def value(text):
    """As QEMU's options take a value: a comma ends it, two are one."""
    return text.replace(',', ',,')


def memory(size):
    """Memory that skuad can map, and the machine that has it."""
    return ['-m', size, '-object', 'memory-backend-memfd,id=mem0,size=%s,share=on' % size,
            '-machine', ','.join((ARCH.machine, 'memory-backend=mem0', ARCH.machine_options))]


def nics(sockets):
    """The NICs that a skuad serves on these sockets, each in a slot: without a root port above it, QEMU shows no link."""
    return [word for index, path in enumerate(sockets) for word in (
        '-device', 'pcie-root-port,id=slot%d,chassis=%d,hotplug=off' % (index, index + 1),
        '-device', '{"driver":"vfio-user-pci","id":"nic%d","bus":"slot%d","socket":{"path":"%s","type":"unix"}}'
        % (index, index, path))]


def machine(size, sockets, iommu):
    """Memory and NICs. An IOMMU has to come before the devices whose addresses it translates."""
    return [*memory(size), *(['-device', ARCH.iommu] if iommu else []), *nics(sockets)]


def words(kernel, initramfs, console, accelerator, append, cpus, machine, ports, control, shares, tty):
    """kernel: a directory of make-kernel.sh. machine: the words of machine(). ports: file descriptors by
    name. control: skuad's control socket or None. shares: directories of the host."""
    command = [
        ARCH.emulator, '-name', 'skua', *accelerator,
        '-smp', str(cpus), *machine, '-nodefaults', '-no-reboot', '-no-user-config', '-display', 'none',
        '-kernel', os.path.join(kernel, 'vmlinux'), '-initrd', initramfs,
        '-append', ' '.join((APPEND, append)),
        '-chardev', 'file,id=console,path=%s' % value(console), '-serial', 'chardev:console',
        '-device', 'virtio-rng-pci', '-device', 'virtio-serial-pci,max_ports=8']
    for index, image in enumerate((os.path.join(paths.IMAGES, 'root.erofs'), os.path.join(kernel, 'modules.erofs'))):
        command += ['-drive', 'file=%s,id=disk%d,if=none,format=raw,readonly=on,cache=unsafe' % (value(image), index),
                    '-device', 'virtio-blk-pci,drive=disk%d' % index]
    for port, descriptor in ports.items():
        command += ['-chardev', 'socket,id=%s,fd=%d' % (port, descriptor),
                    '-device', 'virtserialport,chardev=%s,name=%s' % (port, port)]
    if control:
        command += ['-chardev', 'socket,id=%s,path=%s' % (SKUAD_PORT, value(control)),
                    '-device', 'virtserialport,chardev=%s,name=%s' % (SKUAD_PORT, SKUAD_PORT)]
    if tty:
        command += ['-chardev', 'stdio,id=tty,signal=off', '-device', 'virtconsole,chardev=tty,name=tty']
    for index, where in enumerate(shares):
        command += ['-virtfs', 'local,path=%s,mount_tag=share%d,security_model=none,multidevs=remap'
                    % (value(where), index)]
    return command
