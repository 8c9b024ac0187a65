"""The lab, in rooms. Each uses those above it, and none below."""

ROOMS = (
    'target',       # what guests are: architecture and distribution
    'host',         # this machine: where things are, what is told, processes and namespaces
    'roots',        # the Debian root, what it is fetched from, programs that run in it
    'products',     # what is made in it: images, kernels, modules, provider, skuad
    'machines',     # QEMU and skuad, and what a guest says
    'runs',         # guests that do something: lab run, lab shell, lab demo
    'clusters',     # guests that stay: lab up, lab exec NODE, lab down
    'checks',       # lab check
    'command',      # the command line
)
