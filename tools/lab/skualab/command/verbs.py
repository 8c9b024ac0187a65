"""The verbs of the lab: each takes the parsed command line, and returns the lab's exit status.

They import what they use when they are called: a bad option is told at once.
"""

import os

from skualab.host import paths
from skualab.host.say import LabError


def scene_options(args, **more):
    from skualab.roots import chroot
    from skualab.runs import scene
    for text in args.env:
        if '=' not in text:
            raise LabError("--env: '%s' must be NAME=VALUE" % text)
    for path in args.deb:
        if not os.path.isfile(path):
            raise LabError('--deb: there is no file %s' % path)
    share = os.path.realpath(args.share) if args.share else None
    if share and share != os.path.realpath(paths.SELFTESTS) and not os.path.isdir(share):
        raise LabError('--share: there is no directory %s' % args.share)
    if share and chroot.needed(share):
        raise LabError('--share: the lab has its own %s, which the directory would cover; choose one below it' % share)
    return scene.Options(
        kernel=args.kernel, modules=args.modules, rdma_core=args.rdma_core, cpus=args.cpus,
        memory=args.mem or scene.MEMORY, share=share, env=args.env, deb=args.deb, capture=args.capture, iommu=args.iommu,
        **more)


def options_of_one(args):
    return scene_options(args, netns=args.netns, device=args.device, nics=args.device != ['none'], gdb=args.gdb)


def run(args):
    if args.guests > 1:
        from skualab.machines import memory
        from skualab.runs import together
        if args.netns != 'split' or args.gdb or (args.device and len(args.device) != args.guests):
            raise LabError('each of several guests has one NIC and no namespaces: leave out --netns and --gdb, and give '
                           '--device %d times or not at all' % args.guests)
        options = options_of_one(args)
        options.netns, options.memory = 'alone', memory.fit([args.mem] * args.guests)[0]
        commands = {name: ['bash', '-c', words] for name, words in args.commands.items()}
        return together.run_together(options, commands, args.server, args.timeout, args.artifacts)
    from skualab.runs import run as one
    return one.run(options_of_one(args), args.command, args.timeout, args.artifacts)


def shell(args):
    from skualab.runs.shell import shell as play
    return play(options_of_one(args), args.artifacts)


def demo(args):
    from skualab.runs.demo import demo as play
    return play(args.kernel)


def check(args):
    from skualab.checks import report
    return report.check(args.stage, args.full, args.debug, args.changed, args.all)


def build(args):
    from skualab.products import stages
    return stages.build(args.what)


def up(args):
    from skualab.clusters import plan, up as boot
    described = plan.read(args.file) if args.file else plan.alike(args.guests)
    planned = plan.make(described, args.file or '--guests', args.host, memory=args.mem, cpus=args.cpus)
    return boot.up(args.name or plan.name(args.file), planned, scene_options(args, netns='alone'), args.timeout)


def down(args):
    from skualab.clusters.down import down as end
    return end(args.name)


def execute(args):
    if args.node:
        from skualab.clusters.enter import execute as enter
        return enter(args.name, args.node, args.command, args.timeout)
    from skualab.roots import chroot, root
    root.STAGE.run()
    return chroot.run(args.command, cwd=os.getcwd()).returncode


def skuactl(args):
    from skualab.machines.skuad import SKUACTL
    from skualab.roots import chroot
    where = ['--socket', os.path.abspath(args.socket)] if args.socket else []
    places = [os.path.dirname(os.path.abspath(path)) for path in args.sockets]
    binds = [place for place in places if os.path.isdir(place)]
    return chroot.run([SKUACTL, *where, *args.command], cwd=os.getcwd(), binds=binds).returncode


def doctor(_args):
    from skualab.command import doctor as about
    return about.doctor()


def cache(args):
    from skualab.roots import cache as kept
    return kept.export(args.file) if args.verb == 'export' else kept.restore(args.file)
