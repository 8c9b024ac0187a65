"""All stages: what guests need, what checks need besides, and lab build, which brings them up to date by name."""

from skualab.host import say
from skualab.host.say import LabError
from skualab.products import debuginfo, images, kernels, modules, programs, provider, sources
from skualab.roots import root
from skualab.target.distro import DISTRO


def bare_guest(series):
    """What a guest of this kernel needs, without NICs."""
    return [root.STAGE, images.IMAGE_STAGE, kernels.STAGES[series], programs.TRAFFIC_STAGE]


def guest(series, rdma_core=DISTRO.rdma_core):
    """What a guest with NICs needs, in order."""
    return bare_guest(series) + [programs.SKUAD_STAGE, modules.STAGES[series], *provider.stages(rdma_core)]


# The tests of selftests/, with the source of the kernel's own headers for tests.
SELFTESTS = [sources.LINUX_STAGES[DISTRO.newest], programs.SELFTESTS_STAGE]


def table():
    """Every stage, in an order in which they can be made: what all guests need, and what checks need."""
    stages = []
    for series in DISTRO.series:
        for stage in guest(series):
            if stage not in stages:
                stages.append(stage)
    others = [stage for role in DISTRO.rdma_cores if role != DISTRO.rdma_core for stage in provider.stages(role)]
    debug = [one.STAGES[series] for series in kernels.DEBUG for one in (kernels, modules)]
    return stages, [*others, *sources.LINUX_STAGES.values(), sources.CHECKERS_STAGE, programs.SELFTESTS_STAGE,
                    *debuginfo.STAGES.values(), *debug]


KERNELS = [kernels.STAGES[series].name for series in DISTRO.series]
# What the names mean that a person would type. Debug kernels are made only by their own names: that takes long.
GROUPS = {'root': ['root'], 'images': ['root-image', *KERNELS], 'kernels': KERNELS,
          'modules': [modules.STAGES[series].name for series in DISTRO.series], 'skuad': ['skuad'], 'linux': ['linux-'],
          'debuginfo': ['debuginfo-'],
          **{'provider' + tail: ['rdma-core' + tail, 'provider' + tail] for tail in sources.TAIL.values()}}


def build(names):
    chosen, more = table()
    if names:
        stages = chosen + more
        patterns = [pattern for name in names for pattern in GROUPS.get(name, [name])]
        chosen = [stage for stage in stages
                  if any(stage.name == pattern or pattern.endswith('-') and stage.name.startswith(pattern)
                         for pattern in patterns)]
        known = {stage.name for stage in stages}
        for pattern in patterns:
            if pattern not in known and not pattern.endswith('-'):
                raise LabError("there is no stage '%s'; the stages are %s" % (pattern, ', '.join(stage.name for stage in stages)))
        if root.STAGE not in chosen:
            chosen.insert(0, root.STAGE)
    made = [stage.name for stage in chosen if stage.run()]
    say.line('rebuilt: %s' % ', '.join(made) if made else 'everything is up to date')
    say.line(root.told())
    return 0
