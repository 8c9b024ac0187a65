"""Passwords of mirrors and proxies stay out of logs, messages, images, and what is for others."""

import os
import re
from urllib.parse import unquote, urlsplit


def login(address):
    """The line of apt's auth.conf for an address that has a user or a password; else nothing."""
    parts = urlsplit(address)
    if '@' not in parts.netloc:
        return ''
    words = [unquote(word or '') for word in (parts.username, parts.password)]
    if any(re.search(r'\s', word) for word in words):
        raise ValueError('a user or password with a space')
    return 'machine %s login %s password %s\n' % (hide(address, ''), *words)


def write(path, text):
    """A file that only its owner may read, whatever it was before."""
    with open(path + '.new', 'w', opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
    os.rename(path + '.new', path)


def hide(text, shown='***@'):
    """A text without the passwords of mirrors and proxies, for logs and messages."""
    return re.sub(r'(\w+://)[^/\s]+@', r'\1' + shown, text)


def hide_in(path):
    """The same in a log, which may be handed to others."""
    with open(path, errors='surrogateescape') as file:
        text = file.read()
    if hide(text) != text:
        with open(path, 'w', errors='surrogateescape') as file:
            file.write(hide(text))
