"""What a run brings along into its guest: a tree that the initramfs lays over the root.

It is a cpio archive (newc), written here, behind the kernel's initramfs: the kernel unpacks
archives that follow each other into one tree. So a guest has what was built when it started,
whatever is built meanwhile.
"""

import os
import stat

from skualab.host import paths
from skualab.machines.nics import SPACES

HOME = 'usr/lib/skua-lab'       # in the guest


class Payload:
    def __init__(self):
        self.entries = {}       # path -> (mode, content)
        for name in ('init', 'agent', 'load', 'nics', 'session'):
            self.file(paths.lab('in-guest', name), HOME + '/' + name)
        for name in SPACES:
            self.file(paths.lab('in-guest/in-netns'), 'usr/bin/' + name)
        self.file(os.path.join(paths.TRAFFIC, 'rdma_traffic'), 'usr/bin/rdma_traffic')
        self.file(os.path.join(paths.TRAFFIC, 'listen_first.so'), HOME + '/listen_first.so')
        self.file(paths.lab('in-guest/listen-first'), 'usr/bin/listen-first')
        self.file(paths.lab('in-guest/modprobe.conf'), 'etc/modprobe.d/skua-lab.conf')

    def text(self, to, content, mode=0o644):
        self._add('payload/' + to, stat.S_IFREG | mode, content.encode())

    def file(self, source, to):
        with open(source, 'rb') as file:
            self._add('payload/' + to, stat.S_IFREG | stat.S_IMODE(os.stat(source).st_mode), file.read())

    def modules(self, directory):
        for name in sorted(os.listdir(directory)):
            if name.startswith('skua') and name.endswith('.ko'):
                self.file(os.path.join(directory, name), '%s/modules/%s' % (HOME, name))

    def tree(self, directory):
        """All files of a tree, where they stand in it."""
        for where, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(where, name)
                self.file(path, os.path.relpath(path, directory))

    def _add(self, path, mode, content):
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self._add(parent, stat.S_IFDIR | 0o755, b'')
        self.entries[path] = (mode, content)

    def write(self, path, initramfs):
        """The archive, behind a copy of the kernel's."""
        with open(initramfs, 'rb') as file:
            head = file.read()
        # It may hold keys (ssh.py).
        with open(path, 'wb', opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(head + b'\0' * (-len(head) % 512))
            with open(paths.lab('in-guest/initramfs-init'), 'rb') as init:
                self._record(file, 1, 'init', stat.S_IFREG | 0o755, init.read())
            for number, name in enumerate(self.entries, 2):
                self._record(file, number, name, *self.entries[name])
            self._record(file, 0, 'TRAILER!!!', 0, b'')

    @staticmethod
    def _record(file, inode, name, mode, content):
        encoded = name.encode() + b'\0'
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = [inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        head = b'070701' + b''.join(b'%08X' % value for value in fields) + encoded
        file.write(head + b'\0' * (-len(head) % 4) + content + b'\0' * (-len(content) % 4))
