# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Connections a second, as rdma_cm's own cmtime makes them, and what each phase of one takes."""

import re

from skualab.host import say
from skualab.runs import scene

COUNT = 300
# Of a phase: from the first connection's begin to the last one's end, and what all took together.
LINE = re.compile(r'^(\S+(?: \S+)*) +\d+ +(\d+) +\d+ +(\d+) +\d+ +\d+$', re.M)
PHASES = ('create id', 'bind addr', 'resolve addr', 'resolve route', 'create qp', 'init qp attr', 'init qp',
          'cm connect', 'rtr qp attr', 'rtr qp', 'rts qp attr', 'rts qp', 'establish', 'disconnect',
          'destroy qp', 'destroy id')


def script(pair, count):
    """Prints what the client prints. Its second test, without QPs, is not looked at, nor how it ends."""
    return '''{server} cmtime -b {address} -c {count} >/tmp/server 2>&1 &
        for i in {{1..100}}; do {server} ss -ltnH | grep -q :7471 && break; sleep 0.05; done
        {client} cmtime -s {address} -c {count}
        kill $! 2>/dev/null; wait'''.format(count=count, **vars(pair))


def parse(output):
    """{phase: microseconds of all connections}, of those that have QPs.

    Phases within "cm connect" have no time of their own, since others run beside them: theirs is the sum
    of what each connection took.
    """
    found = re.search(r'^qp_conn.*?(?=^cm_conn|\Z)', output, re.M | re.S)
    phases = {phase: int(total) or int(together)
              for phase, total, together in LINE.findall(found.group())} if found else {}
    if 'full connect' not in phases or not phases['full connect']:
        raise say.LabError('cmtime printed no figure: %s' % output.strip()[-300:])
    return phases


def measure(play, pair):
    _, output = play.guest.output(script(pair, COUNT), scene.deadline(180))
    return {phase: total / COUNT for phase, total in parse(output).items()}


def show(skua, rxe):
    """What both take for each phase of a connection, of COUNT that are made at once."""
    form = '  %-14s %12s %12s %10s'
    print('\n' + form % ('connections', 'skua', 'rxe', 'rxe:skua'))
    for phase in PHASES:
        ratio = '%.1f' % (rxe[phase] / skua[phase]) if skua.get(phase) and rxe.get(phase) else '-'
        print(form % (phase, '%.0f us' % skua.get(phase, 0), '%.0f us' % rxe.get(phase, 0), ratio))
    whole = skua['full connect'], rxe['full connect']
    print(form % ('a second', *('%.0f' % (1e6 / each) for each in whole), '%.1f' % (whole[1] / whole[0])))
