"""lab run --gdb: what to type for a debugger of the guest's kernel, of skuad, and of a program in the guest.

gdb is the root's. For kernel and skuad it enters the namespaces of QEMU and skuad, in which the paths of sockets,
programs and sources are the same as where they were built. In the guest the repository is at its own path, too.
"""

import os
import select
import shlex
import sys

from skualab.host import paths, say
from skualab.products import modules
from skualab.runs import symbols

SOCKET = 'gdb'              # in the run's directory: QEMU's gdbstub
SCRIPT = 'kernel.gdb'       # what gdb reads
SYMBOLS = 'kernel.symbols'  # and the functions of the kernel
SECTIONS = '.text', '.text.unlikely', '.exit.text', '.rodata', '.data', '.bss'
ASK = '''
shopt -s nullglob
for file in /sys/module/*/sections/.*; do
	read -r address <"$file" && echo "$file $address"
done
'''


def places():
    """Directories of the host that a guest gets for its debuggers: the sources, wherever they were compiled."""
    return [paths.REPO] if (paths.BUILD + '/').startswith(paths.REPO + '/') else [paths.REPO, paths.BUILD]


def _script(directory, kernel, text):
    """The commands of gdb, by where the guest says that its modules are."""
    loaded = {}
    for line in text.splitlines():
        path, address = line.split()
        _, _, _, module, _, section = path.split('/')
        if section in SECTIONS:
            loaded.setdefault(module, []).append('-s %s %s' % (section, address))
    lines = ['set confirm off', 'set breakpoint pending on', 'symbol-file %s/%s' % (directory, SYMBOLS)]
    for module, sections in sorted(loaded.items()):
        path = '%s.build/%s.ko' % (modules.directory(kernel), module)
        if os.path.exists(path):
            lines.append('add-symbol-file %s %s' % (os.path.realpath(path), ' '.join(sections)))
    return '\n'.join([*lines, 'target remote %s/%s' % (directory, SOCKET), ''])


def tell(play, deadline):
    """Say what to type, once the guest's modules are loaded."""
    _, text = play.guest.output(ASK, deadline)
    _, known = play.guest.output(symbols.ASK, deadline)
    with open(os.path.join(play.directory, SYMBOLS), 'wb') as file:
        # Those of our own modules come with their sources.
        file.write(symbols.elf(symbols.functions(known, modules.MODULES)))
    path = os.path.join(play.directory, SCRIPT)
    with open(path, 'w') as file:
        file.write(_script(play.directory, play.options.kernel, text))
    enter = 'nsenter --all --root --wd --target %d gdb -q '
    say.line('gdb of the kernel: %s-x %s' % (enter % play.guest.process.pid(), shlex.quote(path)))
    if play.skuad:
        say.line('gdb of skuad: %s-p 1' % (enter % play.skuad.process.pid()))
    say.line('gdb of a program and libskua, in the guest: gdb --args PROGRAM...')


def wait(play):
    """Until there is a line, or no more, on standard input, so that debuggers are there before the command."""
    say.line('press Enter to run the command')
    while not select.select([sys.stdin], [], [], 0)[0]:
        play.guest.idle(0.2)
    sys.stdin.readline()
