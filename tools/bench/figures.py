# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What registering memory takes, beside rdma_rxe and beside the pinning inside of it; and what an SRQ costs."""

import statistics

from skualab.host import say
from skualab.runs import scene

MIB, CLIENTS, MESSAGES = 1024, 64, 200000
HUGE = 'echo %d >/proc/sys/vm/nr_hugepages; grep -q "^HugePages_Total: *%d$" /proc/meminfo' % (MIB // 2, MIB // 2)
# How long ib_umem_get() takes, told by the function graph tracer: "1234.5 us |  ib_umem_get [ib_uverbs]();"
TRACE = '''mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
    cd /sys/kernel/tracing && echo 0 >tracing_on && echo ib_umem_get >set_ftrace_filter &&
    echo function_graph >current_tracer && echo 1 >tracing_on && cd - >/dev/null && %s >/dev/null &&
    sed -n 's/.* \\([0-9.]*\\) us *| *ib_umem_get.*/\\1/p' /sys/kernel/tracing/trace;
    echo nop >/sys/kernel/tracing/current_tracer; echo >/sys/kernel/tracing/set_ftrace_filter'''


def _numbers(play, command):
    status, output = play.guest.output('cd /mnt/share && ' + command, scene.deadline(240))
    if status:
        raise say.LabError('%s: %s' % (command.split()[0], output.strip()[-300:]))
    return output


def _best(play, command):
    """Microseconds: the least, since all else that runs can only add to it."""
    return min(float(word) for word in _numbers(play, command).split())


def registration(play):
    """[{pages, skua, rxe, umem}]: microseconds of 1 GiB, and of what ib_umem_get() takes of skua's."""
    rows = []
    for pages, word in (('4 KiB', ''), ('2 MiB', ' huge')):
        if word:
            _numbers(play, HUGE)
        command = './bench_register %%s %d%s' % (MIB, word)
        rows.append({'pages': pages, 'skua': _best(play, 'left ' + command % 'skua_0'),
                     'rxe': _best(play, command % 'rxe0'),
                     'umem': _best(play, TRACE % ('left ' + command % 'skua_0'))})
    return rows


def receives(play):
    """{rq, srq}: messages a second of many clients, the median of some turns."""
    rates = {'rq': [], 'srq': []}
    for line in _numbers(play, 'left ./bench_receive %d %d' % (CLIENTS, MESSAGES)).splitlines():
        rates[line.split()[0]].append(float(line.split()[1]))
    return {kind: statistics.median(found) for kind, found in rates.items()}


def show(rows, rates):
    form = '  %-14s %12s %12s %12s %10s %10s'
    print('\n' + form % ('ibv_reg_mr', 'skua', 'rxe', 'ib_umem_get', 'rxe:skua', 'skua:umem'))
    for row in rows:
        print(form % ('1 GiB, ' + row['pages'], *('%.1f ms' % (row[key] / 1e3) for key in ('skua', 'rxe', 'umem')),
                      '%.2f' % (row['rxe'] / row['skua']), '%.2f' % (row['skua'] / row['umem'])))
    print('\n  %d clients: %.0f messages a second to one SRQ, %.0f to an RQ each, ratio %.2f' % (
        CLIENTS, rates['srq'], rates['rq'], rates['srq'] / rates['rq']))
