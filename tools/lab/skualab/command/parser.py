"""The command line."""

import argparse

from skualab.command import verbs
from skualab.products import kernels
from skualab.target.distro import DISTRO

MOST = 250      # guests: each has an address of 192.0.2.0/24
DESCRIPTION = 'The lab builds a Debian root, boots guests with Skua NICs, and runs commands and tests in them.'


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("'%s' must be above 0" % text)
    return value


def named(text):
    name, separator, value = text.partition('=')
    if not separator:
        raise argparse.ArgumentTypeError("'%s' must be NAME=CMD" % text)
    return name, value


def commands_of_guests(args, command):
    """args gets commands, by the names of several guests, and server, the one that begins first."""
    sides = args.left is not None, args.right is not None
    if args.guests == 1:
        if any(sides) or args.guest or args.all is not None:
            raise ValueError('--left, --right, --guest and --all need --guests N')
        return
    if args.guests > MOST:
        raise ValueError('--guests: %d is too many; the lab can boot %d' % (args.guests, MOST))
    if command:
        raise ValueError('--guests takes no command behind --; give each guest one with --guest or --all')
    if any(sides):
        if not all(sides) or args.guests != len(sides) or args.guest or args.all is not None:
            raise ValueError('--left and --right must be used together, with --guests 2, and without --guest and --all')
        args.commands, args.server = {'left': args.left, 'right': args.right}, 'right'
        return
    names = ['node%d' % number for number in range(1, args.guests + 1)]
    given = dict(args.guest)
    for name in given:
        if name not in names:
            raise ValueError("--guest: there is no guest '%s'; the guests are %s" % (name, ', '.join(names)))
    if len(given) < len(args.guest):
        raise ValueError('--guest: a guest was given two commands; give it one')
    args.commands, args.server = {name: given.get(name, args.all) for name in names}, names[0]
    for name, words in args.commands.items():
        if words is None:
            raise ValueError('%s has no command; add --guest %s=CMD or --all CMD' % (name, name))


class Parser(argparse.ArgumentParser):
    """A bad option is a failure of the lab, not of a command: 125."""

    def error(self, message):
        self.exit(125, '%s: %s\n' % (self.prog, message))


def socket_of_skuactl(words):
    """The control socket that words of skuactl's name, or None: its directory has to be bound. Of the other options the
    values may not be taken for one."""
    own = Parser(prog='lab skuactl', add_help=False, usage=argparse.SUPPRESS)
    own.add_argument('-s', '--socket')
    own.add_argument('-j', '--json', action='store_true')
    for names in (('-w', '--write'), ('-i', '--interval'), ('-n', '--rounds')):
        own.add_argument(*names)
    return own.parse_known_args(words)[0].socket


def machine_options(parser):
    """Of each guest of a run or a cluster."""
    parser.add_argument('--kernel', default=DISTRO.kernel, metavar='|'.join((*kernels.STAGES, 'BZIMAGE')),
                        help="Debian's kernel of that series, a debug kernel, or a kernel image of yours")
    parser.add_argument('--modules', metavar='DIR',
                        help='with a BZIMAGE: a directory with lib/modules of that kernel, and skua.ko and skua_ib.ko')
    parser.add_argument('--rdma-core', default=DISTRO.rdma_core, choices=list(DISTRO.rdma_cores),
                        help="use libibverbs and libskua of Debian's %s" % ' or '.join(DISTRO.rdma_cores))
    parser.add_argument('--cpus', type=positive, default=2, metavar='N', help='number of virtual CPUs; default: 2')
    parser.add_argument('--mem', metavar='M', help="the guest's memory, in QEMU's notation; default: 2G, or what several "
                        'guests have room for')
    parser.add_argument('--share', metavar='DIR',
                        help='make DIR available in the guest at /mnt/share; COMMAND starts there')
    parser.add_argument('--env', action='append', default=[], metavar='K=V',
                        help='set an environment variable for COMMAND; may be repeated')
    parser.add_argument('--deb', action='append', default=[], metavar='FILE',
                        help='install a Debian package before COMMAND runs; may be repeated')
    parser.add_argument('--iommu', action='store_true', help='put a virtual IOMMU between NICs and memory')
    parser.add_argument('--capture', action='store_true', help='capture the packets of every NIC')


def guest_options(parser):
    machine_options(parser)
    parser.add_argument('--netns', default='split', choices=('split', 'none', 'exclusive'),
                        help='the network namespaces of NICs and RDMA devices; default: split')
    parser.add_argument('--device', action='append', metavar='OPTS',
                        help="add a NIC with these options of skuad; may be repeated; 'none': no NIC")
    parser.add_argument('--gdb', action='store_true', help='say how to attach gdb to kernel, skuad and libskua, and wait for it')
    parser.add_argument('--artifacts', metavar='DIR', help='write logs, captures and result.json to DIR')


def parse(words):
    # Whatever follows the first -- is a command, and none of our options.
    command = None
    if '--' in words:
        at = words.index('--')
        words, command = words[:at], words[at + 1:]
    parser = Parser(prog='lab', description=DESCRIPTION)
    parser.add_argument('--offline', action='store_true', help='download nothing; use the packages in build/apt')
    commands = parser.add_subparsers(dest='verb_of_lab', required=True, metavar='VERB')

    def verb(name, function, help_text, takes_command=False):
        sub = commands.add_parser(name, help=help_text, prog='lab ' + name, allow_abbrev=False)
        sub.set_defaults(function=function, takes_command=takes_command)
        sub.add_argument('--offline', action='store_true', default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        return sub

    sub = verb('run', verbs.run, 'run a command in a fresh guest: lab run [OPTIONS] -- COMMAND...', True)
    guest_options(sub)
    sub.add_argument('--timeout', type=positive, default=600, metavar='S',
                     help='end the guest after S seconds; default: 600')
    sub.add_argument('--guests', type=positive, default=1, metavar='N',
                     help='boot N guests with one NIC each on one wire')
    sub.add_argument('--guest', type=named, action='append', default=[], metavar='NAME=CMD',
                     help='the shell command of one of N guests: node1, which starts first, node2, ...')
    sub.add_argument('--all', metavar='CMD', help='the shell command of each guest without --guest')
    sub.add_argument('--left', metavar='CMD', help='the shell command of the first of two guests, the client')
    sub.add_argument('--right', metavar='CMD', help='the shell command of the second, the server, which starts first')
    guest_options(verb('shell', verbs.shell, 'boot a guest, and run a shell in it'))
    sub = verb('demo', verbs.demo, 'do what make run does')
    sub.add_argument('--kernel', default=DISTRO.kernel, choices=DISTRO.series)
    sub = verb('check', verbs.check, 'do what make check does')
    sub.add_argument('stage', nargs='*', help='run only these stages')
    sub.add_argument('--all', action='store_true', help='do what make check ALL=1 does')
    sub.add_argument('--full', action='store_true', help='do what make check-full does')
    sub.add_argument('--debug', action='store_true', help='do what make check-debug does')
    sub.add_argument('--changed', nargs='?', const='', metavar='REV',
                     help='run only the stages that depend on files that differ from revision REV of git, short ones '
                          'first; default: where HEAD left its upstream, or HEAD')
    sub = verb('build', verbs.build, 'bring stages up to date')
    sub.add_argument('what', nargs='*', help='stages to build; default: everything that guests need')
    sub = verb('up', verbs.up, 'boot a cluster: guests that stay')
    machine_options(sub)
    sub.add_argument('file', nargs='?', metavar='FILE', help='what describes the cluster; default: guests that are alike')
    sub.add_argument('--guests', type=positive, metavar='N', help='without FILE: how many guests; default: 2')
    sub.add_argument('--host', metavar='HOST', help='of the hosts in FILE, this one')
    sub.add_argument('--name', metavar='NAME', help="the cluster's name; default: that of FILE, or 'cluster'")
    sub.add_argument('--timeout', type=positive, default=600, metavar='S',
                     help='end all guests if one is not up after S seconds; default: 600')
    sub = verb('down', verbs.down, 'end a cluster')
    sub.add_argument('name', nargs='?', metavar='NAME', help='its name, where several are up')
    sub = verb('exec', verbs.execute, 'run a command in a guest of a cluster, or in the root: lab exec [NODE] -- COMMAND...',
               True)
    sub.add_argument('node', nargs='?', metavar='NODE', help='the guest; without COMMAND a shell runs in it')
    sub.add_argument('--name', metavar='NAME', help="the cluster's name, where several are up")
    sub.add_argument('--timeout', type=positive, metavar='S', help='with NODE: end COMMAND after S seconds')
    sub = verb('skuactl', verbs.skuactl, 'run skuactl on the NICs of a running guest: lab skuactl [--socket PATH] -- WORDS...',
               True)
    sub.add_argument('--socket', metavar='PATH', help='the control socket, as lab run prints it')
    sub.add_argument('words', nargs=argparse.REMAINDER, metavar='WORDS',
                     help='of skuactl; put -- before them if they begin with an option')
    verb('doctor', verbs.doctor, 'show what this machine lacks')
    sub = verb('cache', verbs.cache, 'save or load the packages that were downloaded')
    sub.add_argument('verb', choices=('export', 'import'), help='save packages to FILE, or load them')
    sub.add_argument('file', metavar='FILE')

    args = parser.parse_args(words)
    several = args.function == verbs.run and args.guests > 1
    if args.function == verbs.run:
        try:
            commands_of_guests(args, command)
        except ValueError as error:
            parser.error('run: %s' % error)
    if args.function == verbs.up:
        if args.file and args.guests:
            parser.error('up: FILE has the guests; leave out --guests')
        if args.host and not args.file:
            parser.error('up: --host needs a FILE that has hosts')
        args.guests = args.guests or 2
    if args.function == verbs.skuactl:
        command = args.words + (command or [])
        args.sockets = [path for path in (args.socket, socket_of_skuactl(command)) if path]
    inside = args.function == verbs.execute and args.node
    if args.function == verbs.execute and not inside and (args.name or args.timeout):
        parser.error('exec: --name and --timeout need a NODE')
    if args.takes_command and not command and not several and not inside:
        parser.error('%s needs a COMMAND; put it behind --' % args.verb_of_lab)
    if command and not args.takes_command:
        parser.error('%s takes no command; leave out -- and what follows it' % args.verb_of_lab)
    args.command = command
    return args
