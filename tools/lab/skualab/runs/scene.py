"""A scene: skuad, a guest with its NICs, drivers loaded, names and addresses given.

run, shell, demo and check all play in one. `close` always leaves the artefacts behind.
"""

import os
import shlex
import time

from skualab.host import paths
from skualab.host.say import LabError
from skualab.host.sockets import new_place, remove_place
from skualab.machines import guest, nics as nic_list, payload, ssh
from skualab.machines.nics import SPACES
from skualab.machines.qemu import value
from skualab.machines.skuad import SKUACTL, Skuad
from skualab.products import kernels, modules, provider, stages
from skualab.runs import debugger
from skualab.target.distro import DISTRO

NETNS = ('split', 'none', 'exclusive')
DAY = 86400
MEMORY = '2G'
BOOT = 240      # seconds in which guests come up, also where others use the processors: alone it is 10


class Options:
    """What `lab run` offers, with its defaults."""

    def __init__(self, **given):
        self.kernel, self.modules, self.rdma_core = DISTRO.kernel, None, DISTRO.rdma_core
        self.netns, self.cpus, self.memory = 'split', 2, MEMORY
        self.share, self.env, self.deb = None, [], []
        self.device, self.capture, self.gdb = None, False, False
        self.nics = True            # False: a guest without Skua, for comparisons
        self.iommu = False          # the guest reaches its devices through a virtual IOMMU
        self.tty = False
        self.hosts = []             # (address, name) of guests, for /etc/hosts
        self.keys = None            # ssh.Keys, for guests that log in to each other
        self.lines = []             # more ports of the guest's, for others
        self.qemu = []              # more words for QEMU
        self.by_hand = []           # words for QEMU in place of the scene's memory and NICs
        self.__dict__.update(given)


def build(series, options):
    """Bring up to date what a scene with this kernel is made of. Whoever shares the selftests wants those of now."""
    made = stages.guest(series, options.rdma_core) if options.nics else stages.bare_guest(series)
    if options.share and os.path.realpath(options.share) == os.path.realpath(paths.SELFTESTS):
        made = [*made, *stages.SELFTESTS]
    for stage in made:
        stage.run()


def _kernel(options):
    """(directory to boot, directory of our modules)"""
    if options.kernel in kernels.STAGES:
        build(options.kernel, options)
        return kernels.directory(options.kernel), modules.directory(options.kernel)
    if not os.path.isfile(options.kernel):
        raise LabError("--kernel: '%s' is no file, and none of %s" % (options.kernel, ', '.join(kernels.STAGES)))
    build(DISTRO.kernel, options)
    directory = kernels.custom(options.kernel, options.modules)
    return directory, options.modules


class Scene:
    """nics: of a skuad that is not the scene's own, but given to `start`."""

    def __init__(self, directory, options, nics=None):
        os.makedirs(directory, exist_ok=True)
        self.directory, self.options = directory, options
        self.skuad = self.guest = self.place = None
        self.kernel, modules = _kernel(options)
        self.nics = nics or []
        if options.nics and not nics:
            given = options.device or [''] * len(SPACES)
            self.nics = [nic_list.Nic(number, text) for number, text in enumerate(given)]
            if len({nic.name for nic in self.nics}) < len(self.nics):
                raise LabError('--device: two NICs have the same name; give each its own name=NAME')
        self.payload = payload.Payload()
        if self.nics:
            self._ours(modules)
        self.payload.text(payload.HOME + '/nics.list', ''.join(nic.line() + '\n' for nic in self.nics))
        if options.hosts:
            self.payload.text('etc/hosts', ''.join('%s %s\n' % pair for pair in [('127.0.0.1', 'localhost'),
                                                                              *options.hosts]))
        if options.keys:
            options.keys.give(self.payload)
        for path in options.deb:
            self.payload.file(path, payload.HOME + '/deb/' + os.path.basename(path))

    def _ours(self, modules):
        if modules and not os.path.exists(modules + '/skua.ko'):
            raise LabError('--modules: %s has no skua.ko; build it for this kernel with drivers/build-modules' % modules)
        if modules:
            self.payload.modules(modules)
        self.payload.file(SKUACTL, 'usr/bin/skuactl')
        self.payload.tree(provider.directory(self.options.rdma_core))

    def start(self, deadline, skuad=None):
        """Boot and set up."""
        options = self.options
        more, shares = list(options.qemu), [options.share] if options.share else []
        if options.gdb:
            self.place = new_place()
            more += ['-chardev', 'socket,id=gdb,path=%s,server=on,wait=off' % value(self.debugged_at), '-gdb', 'chardev:gdb']
            shares += debugger.places()
        sockets, binds, control = [], [self.place] if self.place else [], None
        if self.nics and not skuad:
            skuad = self.skuad = Skuad(self.nics, self.directory)
            if options.capture:
                skuad.capture()
        if skuad:
            sockets = [skuad.socket(nic) for nic in self.nics]
            binds.append(skuad.place)
            control = skuad.control
        self.guest = guest.Guest(self.directory, self.kernel, self.payload, cpus=options.cpus,
                                 memory=options.memory, nics=sockets, control=control, shares=shares,
                                 binds=binds, more=more, tty=options.tty, by_hand=options.by_hand,
                                 iommu=options.iommu, lines=options.lines)
        self.guest.wait_ready(deadline)
        self.set_up(deadline)

    @property
    def debugged_at(self):
        """The path of the socket at which gdb finds the guest's kernel."""
        return os.path.join(self.place, debugger.SOCKET)

    def set_up(self, deadline):
        """What a guest needs once it has booted."""
        steps = ['set -e']
        if self.options.share:
            steps.append('modprobe -a 9p 9pnet_virtio; mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,'
                         'access=any share0 /mnt/share')
        if self.options.gdb:
            for number, place in enumerate(debugger.places(), bool(self.options.share)):
                steps.append('modprobe -a 9p 9pnet_virtio; mkdir -p {0}; mount -t 9p -o ro,trans=virtio,version=9p2000.L,'
                             'msize=262144 share{1} {0}'.format(shlex.quote(place), number))
        if self.options.deb:
            steps.append('DEBIAN_FRONTEND=noninteractive dpkg -i /usr/lib/skua-lab/deb/*.deb')
        if self.nics:
            steps.append('{0}/nics {1} <{0}/nics.list'.format('/' + payload.HOME, ' '.join((self.options.netns, *SPACES))))
        if self.options.keys:
            steps.append(ssh.START)
        if len(steps) > 1:
            status, output = self.guest.output('\n'.join(steps), deadline)
            if status:
                raise LabError('the guest could not be set up: %s' % (output.strip().splitlines() or ['?'])[-1])

    def script(self, command):
        return script(command, self.options.env, self.options.share)

    def close(self):
        if self.guest:
            self.guest.stop()
        if self.skuad:
            self.skuad.stop()
        if self.place:
            remove_place(self.place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def script(command, env, share):
    """A bash script that runs a command (a list of words) as `lab run` promises."""
    lines = ['export %s' % shlex.quote(text) for text in env]
    lines.append('cd %s' % ('/mnt/share' if share else '/root'))
    return '\n'.join(lines + ['exec ' + ' '.join(shlex.quote(word) for word in command)])


def deadline(seconds):
    return time.monotonic() + seconds
