# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What uses a NIC between two guests, over each transport, in one table and one plot."""

import os

from skualab.host import say
from skualab.roots import chroot
import jobs
import pair

TRANSPORTS = list(pair.TRANSPORTS)
# How many times the best of the others a transport is, and the best of the others itself, on a logarithmic scale.
PLOT = '''set terminal svg size 1100,600 font 'sans,11'
set output '{image}'
set title 'Between two guests: as many times as the best of rdma_rxe and TCP'
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8
set logscale y 2
set grid y
set key outside top center horizontal
set xtics rotate by -35 noenhanced
set bmargin 9
set rmargin 12
plot {bars}, 1 with lines linecolor black notitle
'''


def rows(named, messages):
    """[(name, {transport: figure}, unit, whether more is better)]; @named: {title: {transport: Pair.measure()}}, @messages:
    jobs.measure()."""
    found = []
    for title, measured in named.items():
        for name, *_, in_bytes in pair.ROWS:
            figures = {way: measured[way][name]['figure'] / (1e6 if in_bytes else 1) for way in TRANSPORTS}
            found.append(('%s: %s' % (title, name), figures, 'MB/s' if in_bytes else 'op/s', True))
    for name, _, more in jobs.ROWS:
        figures = {way: messages[way][name][0] for way in messages}
        found.append(('MPI: ' + name, figures, messages[TRANSPORTS[0]][name][1], more))
    return found


def _times(figures, more):
    """{transport: how many times the best of those that are not all Skua's own}: more is better."""
    others = [figures[way] for way in figures if way != TRANSPORTS[0]]
    best = max(others) if more else min(others)
    return {way: figure / best if more else best / figure for way, figure in figures.items()}


def show(found):
    form = '  %-38s' + ' %14s' * len(TRANSPORTS) + ' %10s'
    print('\n' + form % ('between two guests', *TRANSPORTS, 'skua:best'))
    for name, figures, unit, more in found:
        told = ['%.4g %s' % (figures[way], unit) for way in TRANSPORTS]
        print(form % (name, *told, '%.1f' % _times(figures, more)[TRANSPORTS[0]]))


def plot(found, path):
    """Draw it: an SVG at @path, and beside it what gnuplot read."""
    data, script = path[:-4] + '.dat', path[:-4] + '.gnuplot'
    with open(data, 'w') as file:
        for name, figures, _, more in found:
            times = _times(figures, more)
            file.write('\t'.join(['"%s"' % name, *('%.3f' % times[way] for way in TRANSPORTS)]) + '\n')
    bars = ', '.join("'%s' using %d%s title '%s'" % (data, column + 2, ':xtic(1)' if not column else '', way)
                     for column, way in enumerate(TRANSPORTS))
    with open(script, 'w') as file:
        file.write("set datafile separator '\\t'\n" + PLOT.format(image=path, bars=bars))
    chroot.run(['gnuplot', script], check=True, timeout=60)
    say.line('a plot: ' + os.path.relpath(path))
