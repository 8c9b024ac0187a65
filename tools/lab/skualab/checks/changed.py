"""lab check --changed: the stages that depend on what differs from a revision of git."""

import os
import subprocess

from skualab.host import paths, say


def _git(*words):
    """What git says, or None where it fails."""
    done = subprocess.run(['git', '-C', paths.REPO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout if done.returncode == 0 else None


def _base():
    """Where HEAD left its upstream: what is pushed was checked before. HEAD itself if it has none."""
    return (_git('merge-base', 'HEAD', '@{upstream}') or _git('rev-parse', 'HEAD') or 'HEAD').strip()


def files(revision):
    """The paths of files that differ from a revision: committed since, changed, new or gone. A file that was renamed
    is gone and new."""
    tracked = _git('diff', '--name-only', '--no-renames', '--no-relative', '-z', revision, '--')
    new = _git('ls-files', '--others', '--exclude-standard', '-z')
    if tracked is None or new is None:
        raise say.LabError("--changed: git does not know the revision '%s' in %s" % (revision, paths.REPO))
    return [os.path.join(paths.REPO, name) for name in (tracked + new).split('\0') if name]


def only(stages, revision):
    """Of these stages those that depend on such a file, the one with the smallest budget first."""
    revision = revision or _base()
    changes = files(revision)
    chosen = sorted((one for one in stages if any(map(one.depends_on, changes))), key=lambda one: one.budget)
    say.line('%s since %s; %s' % (
        'files that changed: %d' % len(changes) if changes else 'no file changed', revision[:12],
        'the stages that depend on them: ' + ', '.join(one.name for one in chosen) if chosen else 'no stage has to run'))
    return chosen
