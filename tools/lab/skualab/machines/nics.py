"""The NICs of guests."""

from skualab.host.say import LabError


SPACES = ('left', 'right')      # the namespaces of a guest, and the names of two guests


class Nic:
    """Number n of a skuad: its options for skuad, its names in its guest, and its addresses. In a guest that has no
    other it may be number 0 there, and be called after its guest by skuad."""

    def __init__(self, number, options='', name=None, index=None):
        given = {}
        for word in filter(None, options.split(',')):
            key, separator, value = word.partition('=')
            if not separator:
                raise LabError("--device: '%s' must be KEY=VALUE; the user guide lists the keys of skuad" % word)
            if key == 'socket':
                raise LabError("--device: the lab chooses the socket itself; leave out '%s'" % word)
            given[key] = value
        index = number if index is None else index
        self.options = {'name': name or 'skua%d' % index, 'mac': '02:00:00:00:00:%02x' % (number + 1),
                        'link': 'wire:a', **given}
        self.name, self.mac = self.options['name'], self.options['mac'].lower()
        self.netdev, self.rdma = 'skua%d' % index, 'skua_%d' % index
        self.space = SPACES[index % len(SPACES)]
        self.ipv4, self.ipv6 = '192.0.2.%d' % (number + 1), '2001:db8::%x' % (number + 1)
        self.ipv4_length, self.ipv6_length = 24, 64

    def line(self):
        """As in-guest/nics reads it."""
        return ' '.join((self.mac, self.netdev, self.rdma, self.space, '%s/%d' % (self.ipv4, self.ipv4_length),
                         '%s/%d' % (self.ipv6, self.ipv6_length)))
