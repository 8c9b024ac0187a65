"""The NICs of guests."""

from skualab.host.say import LabError


class Nic:
    """Number n: its options for skuad, and its names and addresses in the guest."""

    def __init__(self, number, options=''):
        given = {}
        for word in filter(None, options.split(',')):
            key, separator, value = word.partition('=')
            if not separator or key == 'socket':
                raise LabError("--device: '%s' is not KEY=VALUE for skuad, or is the socket" % word)
            given[key] = value
        self.options = {'name': 'skua%d' % number, 'mac': '02:00:00:00:00:%02x' % (number + 1),
                        'link': 'wire:a', **given}
        self.name, self.mac = self.options['name'], self.options['mac'].lower()
        self.netdev, self.rdma = 'skua%d' % number, 'skua_%d' % number
        self.space = ('left', 'right')[number % 2]
        self.ipv4, self.ipv6 = '192.0.2.%d' % (number + 1), '2001:db8::%x' % (number + 1)

    def line(self):
        """As in-guest/nics reads it."""
        return ' '.join((self.mac, self.netdev, self.rdma, self.space, self.ipv4 + '/24', self.ipv6 + '/64'))
