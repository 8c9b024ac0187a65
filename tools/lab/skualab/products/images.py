"""The image of the root, which guests boot."""

import os
import re

from skualab.host import paths
from skualab.roots import chroot, packages, root
from skualab.roots.stage import Stage

IMAGE = os.path.join(paths.IMAGES, 'root.erofs')


def root_stamp():
    """Changes when the root is made anew."""
    with open(root.STAGE.stamp) as file:
        return file.read() + str(os.stat(paths.ROOT).st_ino)


def _image(log):
    os.makedirs(paths.IMAGES, exist_ok=True)
    # What is mounted there while a command runs in the root is none of it.
    patterns = packages.NOT_IN_GUEST + [re.escape(paths.REPO[1:]) + '/.+']
    exclude = ' '.join('--exclude-regex=' + chroot.quote('^(%s)$' % pattern) for pattern in patterns)
    # A guest that runs keeps the file that it has open.
    chroot.run('mkfs.erofs --quiet -U clear -x -1 {0} {1}.new {2} && mv {1}.new {1}'.format(
        exclude, IMAGE, paths.ROOT),
               stdout=log, stderr=log, check=True, timeout=120)


IMAGE_STAGE = Stage('root-image', _image, lambda: [root_stamp(), *packages.NOT_IN_GUEST], IMAGE, 60)
