"""How the guests of a run log in to each other: as root, with keys that are made for this run and stored nowhere."""

import os
import subprocess

from skualab.host import secrets
from skualab.host.say import LabError
from skualab.roots import chroot, root

# The root's /tmp is memory of this command's own.
MAKE = '''for kind in user host; do
	ssh-keygen -q -t ed25519 -N '' -C '' -f /tmp/$kind
	cat /tmp/$kind; echo; cat /tmp/$kind.pub; echo
done'''
START = 'mkdir -p /run/sshd; /usr/sbin/sshd'        # in a guest
PORT = 22

SERVER = '''\
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxStartups 250
MaxSessions 250
'''
CLIENT = '''\
BatchMode yes
GSSAPIAuthentication no
LogLevel ERROR
'''


class Keys:
    """A key for root, and one for the guests, which are all one host to ssh. directory: where those are that clusters
    of several hosts share; they are made where there are none."""

    NAMES = 'user', 'user_public', 'host', 'host_public'

    def __init__(self, directory=None):
        texts = self._read(directory) if directory and os.path.isdir(directory) else self._make()
        if directory and not os.path.isdir(directory):
            os.makedirs(directory, 0o700)
            for name, text in zip(self.NAMES, texts):
                secrets.write(os.path.join(directory, name), text)
        self.user, self.user_public, self.host, self.host_public = texts

    def _read(self, directory):
        texts = []
        for name in self.NAMES:
            try:
                with open(os.path.join(directory, name)) as file:
                    texts.append(file.read())
            except OSError as error:
                raise LabError('the keys in %s: %s: %s; copy the whole directory' % (
                    directory, name, error.strerror)) from None
        return texts

    @staticmethod
    def _make():
        root.STAGE.run()
        done = chroot.run(MAKE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise LabError('ssh-keygen failed: %s' % (done.stderr.strip().splitlines() or ['no reason given'])[-1])
        return [text.strip() + '\n' for text in done.stdout.strip().split('\n\n')]

    def give(self, payload):
        """To a guest."""
        payload.text('etc/ssh/ssh_host_ed25519_key', self.host, 0o600)
        payload.text('etc/ssh/ssh_known_hosts', '* ' + self.host_public)
        payload.text('etc/ssh/sshd_config.d/skua-lab.conf', SERVER)
        payload.text('etc/ssh/ssh_config.d/skua-lab.conf', CLIENT)
        payload.text('root/.ssh/id_ed25519', self.user, 0o600)
        payload.text('root/.ssh/authorized_keys', self.user_public)
