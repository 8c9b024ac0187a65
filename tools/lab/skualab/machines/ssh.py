"""How the guests of a run log in to each other: as root, with keys that are made for this run and stored nowhere."""

import subprocess

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
    """A key for root, and one for the guests, which are all one host to ssh."""

    def __init__(self):
        root.STAGE.run()
        done = chroot.run(MAKE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise LabError('ssh-keygen failed: %s' % (done.stderr.strip().splitlines() or ['no reason given'])[-1])
        self.user, self.user_public, self.host, self.host_public = (
            text.strip() + '\n' for text in done.stdout.strip().split('\n\n'))

    def give(self, payload):
        """To a guest."""
        payload.text('etc/ssh/ssh_host_ed25519_key', self.host, 0o600)
        payload.text('etc/ssh/ssh_known_hosts', '* ' + self.host_public)
        payload.text('etc/ssh/sshd_config.d/skua-lab.conf', SERVER)
        payload.text('etc/ssh/ssh_config.d/skua-lab.conf', CLIENT)
        payload.text('root/.ssh/id_ed25519', self.user, 0o600)
        payload.text('root/.ssh/authorized_keys', self.user_public)
