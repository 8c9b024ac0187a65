"""Symbols of a guest's kernel for gdb, by what the kernel itself says of its functions (/proc/kallsyms): an ELF file
that has a symbol table and nothing else. So they cost no package and no build, and whatever kernel boots has them.
"""

import struct

from skualab.target.arch import ARCH

ASK = "grep -i ' [tw] ' /proc/kallsyms"
LOWEST = 1 << 63        # of the kernel's own addresses

HEADER, SECTION, SYMBOL = '<16sHHIQQQIHHHHHH', '<IIQQQQIIQQ', '<IBBHQQ'
NOBITS, SYMTAB, STRTAB = 8, 2, 3        # types of sections
ALLOC_EXEC = 6
LOCAL_FUNCTION = 2


def functions(text, without=()):
    """Sorted (address, name) of kallsyms' lines, without those of some modules; '' is the kernel itself."""
    found = set()
    for line in text.splitlines():
        address, _, name, *module = line.split()
        if int(address, 16) >= LOWEST and ''.join(module).strip('[]') not in without:
            found.add((int(address, 16), name))
    return sorted(found)


def elf(named):
    """The file's bytes. All functions are in one section; each ends where the next one begins."""
    lowest, end = named[0][0], named[-1][0] + 1
    names, symbols = bytearray(1), bytearray(struct.pack(SYMBOL, 0, 0, 0, 0, 0, 0))
    for (address, name), (after, _) in zip(named, [*named[1:], (end, '')]):
        symbols += struct.pack(SYMBOL, len(names), LOCAL_FUNCTION, 0, 1, address, after - address)
        names += name.encode() + b'\0'
    own = b'\0.text\0.symtab\0.strtab\0.shstrtab\0'
    at = struct.calcsize(HEADER)
    table = at + len(symbols) + len(names) + len(own)

    def section(name, kind, flags, address, offset, size, link=0, info=0, entry=0):
        return struct.pack(SECTION, own.find(name), kind, flags, address, offset, size, link, info, 1, entry)
    sections = [
        bytes(struct.calcsize(SECTION)),
        section(b'.text', NOBITS, ALLOC_EXEC, lowest, at, end - lowest),
        section(b'.symtab', SYMTAB, 0, 0, at, len(symbols), 3, len(named) + 1, struct.calcsize(SYMBOL)),
        section(b'.strtab', STRTAB, 0, 0, at + len(symbols), len(names)),
        section(b'.shstrtab', STRTAB, 0, 0, at + len(symbols) + len(names), len(own))]
    header = struct.pack(HEADER, b'\x7fELF\2\1\1', 2, ARCH.elf_machine, 1, 0, 0, table, 0, at, 0, 0,
                         struct.calcsize(SECTION), len(sections), len(sections) - 1)
    return header + symbols + names + own + b''.join(sections)
