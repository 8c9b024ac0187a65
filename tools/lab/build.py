"""lab build: bring stages up to date, by name or all that the guests of both kernels need."""

import products
import root
import say
import sources
from say import LabError


def table():
    """Every stage, in an order in which they can be made: what all guests need, and what checks need."""
    stages = []
    for series in root.SERIES:
        for stage in products.stages(series):
            if stage not in stages:
                stages.append(stage)
    return stages, [*products.provider_stages('testing'), *sources.LINUX_STAGES.values(), products.SELFTESTS_STAGE]


# What the names mean that a person would type.
GROUPS = {'root': ['root'], 'images': ['root-image', 'kernel-'], 'kernels': ['kernel-'],
          'modules': ['modules-'], 'skuad': ['skuad'], 'linux': ['linux-'],
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
                raise LabError("no stage '%s': there are %s" % (pattern, ', '.join(stage.name for stage in stages)))
        if root.STAGE not in chosen:
            chosen.insert(0, root.STAGE)
    made = [stage.name for stage in chosen if stage.run()]
    say.line('made anew: %s' % ', '.join(made) if made else 'all is up to date')
    say.line(root.told())
    return 0
