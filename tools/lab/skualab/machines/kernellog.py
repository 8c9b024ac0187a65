"""What in a kernel's log makes a run fail, whatever the command's own status was."""

import re

# Nothing works after these, or the command will never end: no use in waiting for it.
FATAL = re.compile(r'Kernel panic|soft lockup|hard LOCKUP|blocked for more than \d+ seconds|'
                   r'detected stalls on CPUs|self-detected stall|Oops[: ]|unable to handle|'
                   r'general protection fault[,:]')      # a program's has neither

WARNING = re.compile(r'BUG:|WARNING:|INFO: possible|possible (circular|recursive) locking|'
                     r'inconsistent lock state|suspicious RCU usage|UBSAN:|KASAN:|KCSAN:|DMA-API:.*(error|leak)|'
                     r'refcount_t:|list_(add|del) corruption|kmemleak: \d+ new|'
                     r'sleeping function called|scheduling while atomic|double free|use-after-free')

# The older kernel takes a page that is mapped twice for an error; two MRs over the same memory are none.
HARMLESS = re.compile(r'WARNING: .* add_dma_entry[.\w]*\+')

# Nor does lockdep see that rdma_umap_open, in fork, only asks for this lock where it could take
# hw_destroy_rwsem, which the way that holds it while it asks for mmap_lock holds for writing.
NO_DEADLOCK = re.compile(r'^.*WARNING: possible circular locking dependency detected\n.*\n.*\n.* is trying to acquire '
                         r'lock:\n.*&file->disassociation_lock.* at: rdma_umap_open\+', re.M)


def find(text):
    """(first line that matters or None, whether the guest can go on). What comes behind a line may show
    that it does not matter: ask again with more."""
    first, usable = None, True
    for line in NO_DEADLOCK.sub('', text).splitlines():
        fatal = FATAL.search(line)
        if fatal or WARNING.search(line) and not HARMLESS.search(line):
            first = first or line.strip()
            if fatal:
                return first, False
    return first, usable
