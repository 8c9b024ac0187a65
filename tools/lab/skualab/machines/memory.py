"""The memory of several guests: what this machine has room for."""

import re

from skualab.host.say import LabError

MOST, LEAST, STEP = 2048, 512, 64       # MiB of a guest whose size nobody chose
BESIDE = 256                            # MiB that its QEMU takes besides
LEFT = 1024                             # MiB that the host keeps
UNITS = {'': 1, 'K': 1 / 1024, 'M': 1, 'G': 1024, 'T': 1 << 20}


def available():
    """MiB that may be used."""
    with open('/proc/meminfo') as file:
        return next(int(text.split()[1]) >> 10 for text in file if text.startswith('MemAvailable:'))


def mib(text):
    """A size in QEMU's notation."""
    found = re.fullmatch(r'(\d+(?:\.\d+)?)([KMGT]?)', text.upper())
    size = found and int(float(found[1]) * UNITS[found[2]])
    if not size:
        raise LabError("the size of memory '%s' must be a number and M or G, for instance 768M" % text)
    return size


def fit(sizes):
    """Sizes in QEMU's notation of guests that are to run at once, with a size for each that has None."""
    given, free, have = [mib(size) if size else 0 for size in sizes], sizes.count(None), available()
    left = have - LEFT - BESIDE * len(sizes) - sum(given)
    each = min(MOST, left // free // STEP * STEP) if free else 0
    if left < 0 or free and each < LEAST:
        raise LabError(
            '%d guests with %d MiB of memory do not fit: %d MiB are available, of which the host keeps %d and each QEMU '
            'takes %d; %s' % (len(sizes), sum(given) + LEAST * free, have, LEFT, BESIDE, _what_fits(len(sizes), have)))
    return ['%dM' % (size or each) for size in given]


def _what_fits(count, have):
    each = ((have - LEFT) // count - BESIDE) // STEP * STEP
    if each >= LEAST:
        return '%d guests of up to %dM fit' % (count, each)
    fewer = max(0, (have - LEFT) // (LEAST + BESIDE))
    return '%d guests of %dM fit' % (fewer, LEAST) if fewer else 'no guest fits'
