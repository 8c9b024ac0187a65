"""The stages of make check, in the order in which they begin. Short ones are last, so that no long one is left alone."""

import os
import time

from skualab.checks.check import Check
from skualab.checks.kinds import (
    ALL, ALL_BUT_C, cycles, debug_tests, fuzzers, guest_tests, in_root, JOINED, KERNEL, LAB, LAB_OF_GUESTS, lab_tests,
    long_test, loss_tests, made, MANUAL, middleware, modules_command, PROVIDER, provider_tests, ROOT, SCRIPTS, SELFTESTS,
    SKUAD, skuad_tests, storage, SYSTEM, ulp_tests, worlds)
from skualab.checks.selftests import selftests
from skualab.host import paths
from skualab.products import kernels, modules, programs, provider, sources, stages
from skualab.roots import root
from skualab.target.distro import DISTRO

OLDER, NEWER = DISTRO.series
_, NEXT = DISTRO.rdma_cores

# Of verified traffic under each impairment: in make check, and on each link with each kernel in make check-full. And
# the messages of UC and UD of each kind and size to and from rdma_rxe.
LOSS_SECONDS, LOSS_SECONDS_FULL, LOSSY_MESSAGES = 15, 180, 400
MUTANT_PARTS = 4
# Of the test of a bare machine.
BARE = [*LAB_OF_GUESTS, *map(paths.lab, ('skualab/checks', 'tests/test-bare', 'tests/testing.py'))]
# Of the driver: the device's have tables of their own.
DRIVER_MUTANTS = [paths.repo('tools/mutants/' + name) for name in ('mutants', 'driver-mutants', 'driver-mutants-guest',
                                                                   'driver.table')]
MENDER = [paths.lab('tests/mender.py')]     # what test-interop imports
PROGRAMS = os.path.join(paths.SKUAD, 'skuad'), os.path.join(paths.SKUAD, 'skuactl')
CHECKS = [
    # make run on a machine that has nothing. All the rest is what the other stages make, so only the lab is an input.
    # Where there is no root yet, this makes it, and is the stage `demo` as well.
    Check('bare', 1560, [*BARE, paths.repo('Makefile')], ['python3', paths.lab('tests/test-bare')], makes=root.STAGE,
          writes='demo'),
    Check('manual', 60, MANUAL, in_root('python3', 'Documentation/check-manual'), ROOT),
    Check('manual-checker', 300, MANUAL, in_root('python3', 'Documentation/check-manual', '--self-test'), ROOT),
    Check('man', 60, [paths.repo('Documentation'), *programs.SKUAD_INPUTS, *map(paths.lab, ('lab', 'skualab'))],
          in_root('python3', 'Documentation/check-man', made(paths.BUILD, 'man'), *PROGRAMS, LAB),
          [*ROOT, programs.SKUAD_STAGE]),
    Check('completion', 60, [*programs.SKUAD_INPUTS, *map(paths.repo, ('tools/skuad/test-completion',
                                                                       'tools/skuad/completion.bash'))],
          in_root('tools/skuad/test-completion', *PROGRAMS), [*ROOT, programs.SKUAD_STAGE]),
    Check('rules', 60, [paths.repo(name) for name in ('Documentation/manual', 'selftests', 'tools/provider/test',
                                                     'tools/skuad')],
          in_root('python3', 'tools/skuad/harness/untested-rules'), ROOT),
    # What the lab knows of sources in C: the lines of the tables of mutants, and the names of tests.
    Check('tables', 60, ALL, ['python3', paths.lab('test-lab'), 'mutants', 'inputs']),
    Check('lab', 300, ALL_BUT_C, ['python3', paths.lab('test-lab')]),
    skuad_tests('skuad', 1200, 'check'),
    # The longest. On a bare machine what it needs is there by now.
    guest_tests('guest-' + OLDER, 1500, './run_selftests.sh'),
    skuad_tests('skuad-asan', 1200, 'check-asan', full=True),
    skuad_tests('skuad-tsan', 1200, 'check-tsan'),
    worlds('worlds', 240, 10000, 1),
    # From the seeds on, whatever was learnt before, and with the same chance each time: what fails here fails
    # for everybody. What other inputs do is make fuzz's, and fuzz-long's.
    fuzzers('fuzz', 480, SECONDS=15, CHANCE=1),
    fuzzers('fuzz-long', 1500, full=True, SECONDS=600, CHANCE=0),
    provider_tests('provider', 'check', ROOT),
    provider_tests('provider-verbs', 'check-verbs', provider.stages(DISTRO.rdma_core), DISTRO.rdma_core),
    provider_tests('provider-' + NEXT, 'check-verbs', provider.stages(NEXT), NEXT, full=True),
    Check('scripts', 300, SCRIPTS, in_root(paths.lab('in-root/check-scripts'), sources.CHECKERS),
          [*ROOT, sources.CHECKERS_STAGE]),
    Check('kernel-doc', 60, [*KERNEL, paths.lab('in-root/check-kernel-doc')],
          in_root('sh', '-c', 'exec %s %s*' % (paths.lab('in-root/check-kernel-doc'), DISTRO.kbuild + OLDER)), ROOT),
    Check('checkpatch', 300, [*KERNEL, paths.lab('in-root/check-style')],
          in_root(paths.lab('in-root/check-style'), sources.linux(NEWER)), [*ROOT, sources.LINUX_STAGES[NEWER]]),
    *[Check('modules-' + series, 300, KERNEL, modules_command(series),
            [*ROOT, kernels.STAGES[series], modules.STAGES[series]])
      for series in DISTRO.series],
    # What make run shows: the door has to be open.
    Check('demo', 600, SYSTEM, [LAB, 'demo'], stages.guest(OLDER), smoke=True, writes='demo'),
    # What the lab says and does where neither Debian's keyring is, nor a mirror, nor user namespaces.
    Check('ubuntu', 300, [*BARE, paths.lab('tests/test-ubuntu')], ['python3', paths.lab('tests/test-ubuntu')], ROOT,
          full=True),
    # What a user does without the lab: skuad on this host, whatever its C library is, and the README's lines.
    lab_tests('by-hand', 360, 'test-by-hand', inputs=map(paths.repo, ('README.md', 'Documentation/user/qemu.rst'))),
    # What the guides say of hot-plug and of the end of skuad, and a guest that reboots.
    lab_tests('attach', 600, 'test-attach', full=True,
              inputs=[paths.repo('Documentation/user/qemu.rst'), paths.lab('tests/test-by-hand')]),
    storage('nvme', 300, OLDER, '--no-faults', 'nvme', full=False),
    lab_tests('lab-guest', 1200, 'test-guest', inputs=[paths.lab('tests/guest')], full=True),
    lab_tests('cluster', 1200, 'test-cluster', inputs=[paths.lab('skualab/clusters')], full=True),
    guest_tests('guest-removal', 600, './run_selftests.sh', 'test_removal', full=True),
    # Its page of 1 GiB is reserved while most of the memory is free.
    guest_tests('guest-limits', 800, 'sh', '-c',
                'echo 1 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages && '
                'exec ./run_selftests.sh test_limits test_pagelists test_crowd',
                more=('--mem', '5G', '--env', 'SKUA_TEST_TIMEOUT=600'), full=True),
    guest_tests('guest-pressure', 600, './run_selftests.sh', 'test_pressure',
                more=('--mem', '700M', '--env', 'SKUA_TEST_TIMEOUT=540'), full=True),
    *[guest_tests('guest-inject' + tail, 800, './run_selftests.sh', 'test_inject.sh', 'test_death.sh', 'test_release',
                  series=series, full=True) for series, tail in ((OLDER, ''), (NEWER, '-' + NEWER))],
    guest_tests('guest-survival', 500, './run_selftests.sh', 'test_survival.sh', full=True),
    guest_tests('guest-devlink', 500, './run_selftests.sh', 'test_devlink.sh', full=True),
    guest_tests('guest-exclusive', 300, './run_selftests.sh', 'test_netns.sh', more=('--netns', 'exclusive'), full=True),
    *[guest_tests('guest-bonding' + tail, 300, './run_selftests.sh', 'test_bonding.sh', series=series,
                  more=('--device', 'link=wire:a') * 3, full=True) for series, tail in ((OLDER, ''), (NEWER, '-' + NEWER))],
    # Addresses of the device are not those of memory: what is contiguous for one need not be for the other.
    guest_tests('guest-iommu', 500, './run_selftests.sh', 'test_iommu.sh', 'test_rc', 'test_srq', more=('--iommu',),
                full=True),
    guest_tests('guest-persistent', 300, './run_selftests.sh', 'test_persist',
                more=('--device', 'link=wire:a,persistent=on', '--device', 'link=wire:a,persistent=on'), full=True),
    # The share does not survive a sleep.
    guest_tests('guest-power', 300, 'sh', '-c',
                'cp -r . /tmp/selftests && cd /tmp/selftests && exec ./run_selftests.sh test_power.sh', full=True),
    # That the traffic goes on; at which rate is a figure of a quiet machine.
    guest_tests('guest-hostile', 400, './run_selftests.sh', 'test_hostile.sh',
                more=('--env', 'SKUA_HOSTILE_SHARE=0'), full=True),
    loss_tests('loss', LOSS_SECONDS, full=False),
    guest_tests('guest-middleware', 500, './run_selftests.sh', 'test_middleware.sh', full=True),
    # What the driver does in another way on this kernel; all the rest is in make check-full.
    guest_tests('guest-' + NEWER, 800, './run_selftests.sh', 'test_rc', 'test_ud', 'test_cq', 'test_odp', 'test_dmabuf',
                'test_raw', 'test_rss', 'test_strip', 'test_capabilities', 'test_buffers', 'test_device.sh',
                series=NEWER),
    guest_tests('pyverbs-' + OLDER, 600, './pyverbs/run'),
    # From one NIC to the other; make check-full has the other way, too.
    guest_tests('guest-cm', 500, './run_selftests.sh', 'test_cm.sh', more=('--env', 'SKUA_CM_FROM=0')),
    guest_tests('guest-cm-' + OLDER, 500, './run_selftests.sh', 'test_cm.sh', more=('--env', 'SKUA_TEST_TIMEOUT=450'),
                full=True),
    # One PUT of UCX and some collectives of Open MPI; all the rest is in make check-full.
    middleware('mpi', 500, '--tests', '@(rc_verbs, put_bw|ucx, 2 ranks in 2 guests, collectives)', 'ucx', 'openmpi',
               full=False),
    debug_tests('guest-debug', 'test_verbs', 'test_rc', 'test_events', 'test_device.sh'),
    debug_tests('guest-debug-netdev', 'test_netdev.sh', 'test_counters.sh'),
    # By itself, since lockdep tells of one thing only (kernellog.NO_DEADLOCK), and is silent then.
    debug_tests('guest-debug-removal', 'test_removal'),
    debug_tests('guest-debug-kernel', 'test_kernel.sh', 'test_xrc_kernel'),
    debug_tests('guest-debug-verbs', 'test_bad_objects', 'test_bad_memory', 'test_bad_qps', 'test_bad_posting',
                'test_bad_work', 'test_bad_commands', 'test_bad_handles', 'test_threads', 'test_fork', 'test_teardown'),
    debug_tests('guest-debug-datagrams', 'test_ud', 'test_uc', 'test_srq', 'test_tags', 'test_xrc', 'test_cq',
                'test_mw', 'test_dm', 'test_rereg', 'test_flush', 'test_odp', 'test_dmabuf', 'test_mcast', 'test_raw',
                'test_rss', 'test_strip', 'test_tso', 'test_rate', 'test_import', 'test_domains'),
    debug_tests('guest-debug-cm', 'test_cm.sh'),
    debug_tests('guest-debug-death', 'test_death.sh'),
    debug_tests('guest-debug-inject', 'test_inject.sh'),
    debug_tests('guest-debug-pressure', 'test_pressure', memory='1G'),
    debug_tests('guest-debug-devlink', 'test_devlink.sh'),
    debug_tests('guest-debug-survival', 'test_survival.sh'),
    debug_tests('guest-debug-failures', 'test_failures', 'test_probe_failures.sh'),
    debug_tests('guest-debug-deeper', 'test_probe_deeper.sh', last=()),
    debug_tests('guest-debug-kernel-failures', 'test_kernel_failures.sh'),
    Check('inputs', 900, ALL, ['python3', paths.lab('tests/test-inputs')],
          [*ROOT, sources.CHECKERS_STAGE, sources.LINUX_STAGES[NEWER], programs.SKUAD_STAGE], full=True),
    guest_tests('guest-iommu-kernel', 900, './run_selftests.sh', 'test_kernel.sh', 'test_xrc_kernel', 'test_device.sh',
                more=('--iommu',), full=True),
    guest_tests('guest-hostile-share', 400, './run_selftests.sh', 'test_hostile.sh', full=True, alone=True),
    worlds('worlds-million', 7200, 1000000, int(time.strftime('%Y%m%d')) * 1000000, full=True),
    Check('teeth', 3600, [*SKUAD, *PROVIDER, paths.repo('tools/mutants')],
          in_root('tools/mutants/mutants', '--jobs', '2', '--out', made(paths.BUILD, 'mutants'),
                  '--rdma-core', provider.tree_of(DISTRO.rdma_core) + '/build'),
          [*ROOT, *provider.stages(DISTRO.rdma_core)], full=True, explains_skips=True, alone=True),
    # In parts, so that what has passed need not run again.
    *[Check('driver-mutants-%d' % part, 5400, [*SYSTEM, *selftests(), *DRIVER_MUTANTS],
            [paths.repo('tools/mutants/driver-mutants'), '--part', '%d/%d' % (part, MUTANT_PARTS),
             '--out', made(paths.BUILD, 'driver-mutants', str(part))],
            [*stages.guest(OLDER), *SELFTESTS], full=True, explains_skips=True) for part in range(1, MUTANT_PARTS + 1)],
    long_test('neighbour', 1800, 'check-plain', 'harness/test_neighbour', 'SKUA_STORMS=100'),
    long_test('goodput-seeds', 1800, 'check-plain', 'harness/test_goodput', 'SKUA_SEEDS=10', 'SKUA_GOODPUT_MIB=128'),
    long_test('forged', 600, 'check', 'harness/test_forged', 'SKUA_FORGED=10000000'),
    *[long_test('recovery-' + mode, 900, 'check-plain', 'harness/test_recovery', 'SKUA_VERIFY_MIB=10240',
                'SKUA_TESTS=*nothing_is_corrupted' + test) for mode, test in (
                ('repeat', ''), ('go-back-n', '_by_go_back_n'), ('threads', '_between_threads'))],
    cycles('reset', 1000),
    cycles('unbind', 1000),
    cycles('reload', 1000),
    lab_tests('interop-rxe', 2400, 'test-interop', inputs=MENDER, needs=SELFTESTS, full=True, alone=True),
    lab_tests('interop-lossy', 2700, 'test-interop', '--lossy', str(LOSSY_MESSAGES), inputs=MENDER, needs=SELFTESTS,
              full=True),
    *[loss_tests('loss-' + link + tail, LOSS_SECONDS_FULL, series, link)
      for link in JOINED for series, tail in ((OLDER, ''), (NEWER, '-' + NEWER))],
    lab_tests('pair', 400, 'test-pair', full=True),
    *[storage('storage-' + series, 3600, series) for series in DISTRO.series],
    storage('storage-debug', 3600, 'debug', 'nvme-death', 'nfs-reset', 'nfs-death', 'iser-death', 'srp-death'),
    *map(ulp_tests, (*DISTRO.series, *kernels.DEBUG)),
    middleware('middleware', 3600, 'rsockets', 'ucx', 'libfabric', 'rpma', 'qperf', 'dmabuf', 'ceph'),
    middleware('preload', 1800, '--kernel', NEWER, '--rdma-core', NEXT, '--mem', '3G', '--env', 'SKUA_PRELOAD_MIB=1024',
               'preload', needs=provider.stages(NEXT), kernel=NEWER),
    middleware('mpi-four', 3000, '--guests', '4', 'openmpi', 'mpich'),
    lab_tests('mpi-death', 900, 'test-mpi-death', needs=SELFTESTS, full=True),
    lab_tests('links', 660, 'test-links', inputs=[paths.repo('Documentation/user/skuad.rst')], full=True),
    lab_tests('hosts', 1200, 'test-hosts', full=True,
              inputs=[paths.lab('skualab/clusters'), paths.repo('Documentation/user/cluster.rst')]),
    lab_tests('goodput', 660, 'test-goodput', full=True, alone=True),
    guest_tests('traffic', 3600, 'left', 'rdma_traffic', '-q', '64', '-b', '10G', 'skua_0', 'skua_1', full=True),
    guest_tests('guest-%s-all' % NEWER, 1800, './run_selftests.sh', series=NEWER, full=True),
    guest_tests('guest-removal-' + NEWER, 600, './run_selftests.sh', 'test_removal', series=NEWER, rdma_core=NEXT,
                full=True),
    guest_tests('guest-cm-' + NEWER, 500, './run_selftests.sh', 'test_cm.sh', series=NEWER, rdma_core=NEXT,
                more=('--env', 'SKUA_TEST_TIMEOUT=450'), full=True),
    guest_tests('guest-' + NEXT, 1800, './run_selftests.sh', series=NEWER, rdma_core=NEXT, full=True),
    guest_tests('pyverbs-' + NEWER, 900, './pyverbs/run', series=NEWER, full=True),
    guest_tests('pyverbs-' + NEXT, 900, './pyverbs/run', series=NEWER, rdma_core=NEXT, full=True),
]
