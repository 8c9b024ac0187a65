"""Stock programs between two RDMA devices of a guest: how they are run and read.

Of perftest (ib_*_bw, ib_*_lat) and libibverbs' examples (ibv_rc_pingpong).
"""

from skualab.host.say import LabError


class Pair:
    """Two devices: how to run a command beside each, their names, the server's address, GID index."""

    def __init__(self, client, server, client_device, server_device, address, gid=1):
        self.client, self.server = client, server
        self.client_device, self.server_device = client_device, server_device
        self.address, self.gid = address, gid


SKUA = Pair('left', 'right', 'skua_0', 'skua_1', '192.0.2.2')


def script(pair, program, size, options=''):
    """A bash script that runs a program's server and client; it prints what the client prints, and what the server
    prints if either fails."""
    words = '-s %d %s' % (size, options)
    if program == 'ibv_rc_pingpong':
        words = '-g %d -c %s' % (pair.gid, words)
    else:
        words = '-x %d -F %s' % (pair.gid, words)
    return '''{server} {program} -d {server_device} {words} >/tmp/server 2>&1 &
        for i in {{1..100}}; do {server} ss -ltnH | grep -q :18515 && break; sleep 0.05; done
        {client} {program} -d {client_device} {words} {address} || {{ cat /tmp/server; exit 1; }}
        wait $! || {{ status=$?; cat /tmp/server; exit $status; }}'''.format(program=program, words=words, **vars(pair))


def result(program, size, output):
    """Seconds of a ping-pong or latency program; bytes a second of a bandwidth program."""
    try:
        if program == 'ibv_rc_pingpong':
            return float(next(line for line in output.splitlines() if line.endswith('usec/iter')).split()[-2]) / 1e6
        line = [line for line in output.splitlines() if line.split()[:1] == [str(size)]][-1].split()
        # ib_*_lat: t_typical in us is the fifth column; ib_*_bw: the average in MiB/s the fourth.
        return float(line[4]) / 1e6 if program.endswith('_lat') else float(line[3]) * 2**20
    except (StopIteration, IndexError, ValueError):
        raise LabError('%s printed no result that the lab knows: %s' % (program, output.strip()[-200:])) from None


def rate(value):
    """Bytes a second, for a table."""
    return '%.2f GB/s' % (value / 1e9) if value >= 1e8 else '%.2f MB/s' % (value / 1e6)


def time(value):
    """Seconds, for a table."""
    return '%.1f us' % (value * 1e6)


def size(value):
    """Bytes of a message, for a table."""
    for unit, log in (('MiB', 20), ('KiB', 10)):
        if value >= 1 << log:
            return '%d %s' % (value >> log, unit)
    return '%d B' % value
