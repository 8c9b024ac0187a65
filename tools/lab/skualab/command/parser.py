"""The command line."""

import argparse

from skualab.command import verbs
from skualab.target.distro import DISTRO

DESCRIPTION = 'The lab: builds a Debian root, boots guests with Skua NICs, runs commands and tests in them.'


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("'%s' is not above 0" % text)
    return value


class Parser(argparse.ArgumentParser):
    """A bad option is a failure of the lab, not of a command: 125."""

    def error(self, message):
        self.exit(125, '%s: %s\n' % (self.prog, message))


def guest_options(parser):
    parser.add_argument('--kernel', default=DISTRO.kernel, metavar='|'.join((*DISTRO.series, 'debug', 'BZIMAGE')))
    parser.add_argument('--modules', metavar='DIR', help='with a BZIMAGE: holds lib/modules; and our modules')
    parser.add_argument('--rdma-core', default=DISTRO.rdma_core, choices=list(DISTRO.rdma_cores),
                        help="libibverbs and libskua of Debian's %s" % ' or '.join(DISTRO.rdma_cores))
    parser.add_argument('--netns', default='split', choices=('split', 'none', 'exclusive'))
    parser.add_argument('--cpus', type=positive, default=2, metavar='N')
    parser.add_argument('--mem', default='2G', metavar='M', help="the guest's memory, as QEMU takes it: 2G")
    parser.add_argument('--share', metavar='DIR', help='at /mnt/share in the guest, where COMMAND starts')
    parser.add_argument('--env', action='append', default=[], metavar='K=V')
    parser.add_argument('--deb', action='append', default=[], metavar='FILE', help='install a package first')
    parser.add_argument('--device', action='append', metavar='OPTS',
                        help="a NIC, with skuad's options; may be repeated; 'none': no NIC")
    parser.add_argument('--capture', action='store_true', help="every NIC's packets into the artefacts")
    parser.add_argument('--gdb', action='store_true', help='wait for a debugger')
    parser.add_argument('--artifacts', metavar='DIR')


def parse(words):
    # Whatever follows the first -- is a command, and none of our options.
    command = None
    if '--' in words:
        at = words.index('--')
        words, command = words[:at], words[at + 1:]
    parser = Parser(prog='lab', description=DESCRIPTION)
    parser.add_argument('--offline', action='store_true', help='use only what is kept in build/apt')
    commands = parser.add_subparsers(dest='verb_of_lab', required=True, metavar='VERB')

    def verb(name, function, help_text, takes_command=False):
        sub = commands.add_parser(name, help=help_text, prog='lab ' + name, allow_abbrev=False)
        sub.set_defaults(function=function, takes_command=takes_command)
        sub.add_argument('--offline', action='store_true', default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        return sub

    sub = verb('run', verbs.run, 'run a command in a fresh guest: lab run [OPTIONS] -- COMMAND...', True)
    guest_options(sub)
    sub.add_argument('--timeout', type=positive, default=600, metavar='S')
    sub.add_argument('--guests', type=int, default=1, choices=(1, 2), help='2: a NIC each, and --left and --right')
    sub.add_argument('--left', metavar='CMD', help='with two guests: the shell command of the one')
    sub.add_argument('--right', metavar='CMD', help="and of the other, which begins first: the server's")
    guest_options(verb('shell', verbs.shell, 'an interactive guest'))
    sub = verb('demo', verbs.demo, 'what make run does')
    sub.add_argument('--kernel', default=DISTRO.kernel, choices=DISTRO.series)
    sub = verb('check', verbs.check, 'what make check does')
    sub.add_argument('stage', nargs='*', help='only these stages')
    sub.add_argument('--full', action='store_true', help='what make check-full does')
    sub.add_argument('--debug', action='store_true', help='what make check-debug does')
    sub = verb('build', verbs.build, 'bring stages up to date')
    sub.add_argument('what', nargs='*', help='stages; without any, all that guests need')
    verb('exec', verbs.execute, 'run a command in the root: lab exec -- COMMAND...', True)
    sub = verb('skuactl', verbs.skuactl, 'ask the skuad of a running guest')
    sub.add_argument('--socket')
    sub.add_argument('words', nargs='+')
    verb('doctor', verbs.doctor, 'what this machine lacks')
    sub = verb('cache', verbs.cache, 'keep fetched packages for another machine')
    sub.add_argument('verb', choices=('export', 'import'))
    sub.add_argument('file')

    args = parser.parse_args(words)
    pair = args.function == verbs.run and args.guests == 2
    if pair and (command or args.left is None or args.right is None):
        parser.error('run: two guests have --left CMD and --right CMD, and no other')
    if args.function == verbs.run and not pair and (args.left or args.right):
        parser.error('run: --left and --right are for --guests 2')
    if args.takes_command and not command and not pair:
        parser.error('%s: no COMMAND: put it behind --' % args.verb_of_lab)
    if command and not args.takes_command:
        parser.error('%s takes no command' % args.verb_of_lab)
    args.command = command
    return args
