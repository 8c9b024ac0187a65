"""lab run --gdb: what to type for a debugger of the guest's kernel, of skuad, and of a program in the guest.

gdb is the root's. For kernel and skuad it enters the namespaces of QEMU and skuad, in which the paths of sockets,
programs and sources are the same as where they were built. In the guest the repository is at its own path, too.
"""

import os
import select
import shlex
import sys

from skualab.host import paths, say
from skualab.products import debuginfo, modules
from skualab.runs import symbols

SOCKET = 'gdb'              # in a place for sockets: QEMU's gdbstub
SCRIPT = 'kernel.gdb'       # what gdb reads
SYMBOLS = 'kernel.symbols'  # and the functions of whatever has no debug information
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


def known_files(kernel):
    """The files with debug information, by module; the kernel itself is ''."""
    known = debuginfo.files(kernel)
    for module in modules.MODULES:
        path = '%s.build/%s.ko' % (modules.directory(kernel), module)
        if os.path.exists(path):
            known[module] = os.path.realpath(path)
    return known


def script(directory, socket, known, text):
    """The commands of gdb, by where the guest says that its modules are."""
    loaded = {}
    for line in text.splitlines():
        path, address = line.split()
        _, _, _, module, _, section = path.split('/')
        if section in SECTIONS:
            loaded.setdefault(module, []).append('-s %s %s' % (section, address))
    lines, names = ['set confirm off', 'set breakpoint pending on'], shlex.quote(os.path.join(directory, SYMBOLS))
    if '' in known:
        lines += ['symbol-file ' + shlex.quote(known['']), 'add-symbol-file %s -o 0' % names]
    else:
        lines.append('symbol-file ' + names)
    lines += ['add-symbol-file %s %s' % (shlex.quote(known[module]), ' '.join(sections))
              for module, sections in sorted(loaded.items()) if module in known]
    return '\n'.join([*lines, 'target remote ' + socket, ''])


def tell(play, deadline):
    """Say what to type, once the guest's modules are loaded."""
    kernel = play.options.kernel
    _, text = play.guest.output(ASK, deadline)
    _, functions = play.guest.output(symbols.ASK, deadline)
    files = known_files(kernel)
    with open(os.path.join(play.directory, SYMBOLS), 'wb') as file:
        file.write(symbols.elf(symbols.functions(functions, files)))
    path = os.path.join(play.directory, SCRIPT)
    with open(path, 'w') as file:
        file.write(script(play.directory, play.debugged_at, files, text))
    enter = 'nsenter --all --root --wd --target %d gdb -q '
    say.line('gdb of the kernel: %s-x %s' % (enter % play.guest.process.pid(), shlex.quote(path)))
    if kernel in debuginfo.STAGES and '' not in files:
        say.line('it gets types and lines of the kernel by: tools/lab/lab build debuginfo-' + kernel)
    if play.skuad:
        say.line('gdb of skuad: %s-p 1' % (enter % play.skuad.process.pid()))
    say.line('gdb of a program and libskua, in the guest: gdb --args PROGRAM...')


def wait(play):
    """Until there is a line, or no more, on standard input, so that debuggers are there before the command."""
    say.line('press Enter to run the command')
    while not select.select([sys.stdin], [], [], 0)[0]:
        play.guest.idle(0.2)
    sys.stdin.readline()
