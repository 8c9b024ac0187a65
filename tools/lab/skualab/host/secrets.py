"""Passwords of mirrors and proxies stay out of logs and messages."""

import re


def hide(text, shown='***@'):
    """A text without the passwords of mirrors and proxies, for logs and messages."""
    return re.sub(r'(\w+://)[^/@\s]+@', r'\1' + shown, text)


def hide_in(path):
    """The same in a log, which may be handed to others."""
    with open(path, errors='surrogateescape') as file:
        text = file.read()
    if hide(text) != text:
        with open(path, 'w', errors='surrogateescape') as file:
            file.write(hide(text))
