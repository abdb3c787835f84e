"""Image files: IDX (the format of MNIST) and the archive of CIFAR-10 JPEGs."""

from __future__ import annotations

import io
import math
import struct
import tarfile

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.tables import Array

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def parse_idx(data: bytes, what: str) -> Array:
    """Read one IDX array of any shape from unpacked bytes; InputError: not IDX, or not as long as it says."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or not data[3]:
        raise InputError(
            f"{what} is not an IDX file (it starts with {data[:4]!r}); pass the images file of an IDX pair"
        )
    dtype, dims = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * dims
    shape = struct.unpack(f">{dims}I", data[4:start]) if len(data) >= start else (0,)
    if len(data) < start or len(data) - start != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{what} holds {len(data)} bytes, its IDX header says {shape} values of {dtype.itemsize} bytes; "
            "the file is cut or damaged: get it again"
        )
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def pixel_names(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Name the features of images of one shape, row by row: ``pixel 3,14``."""
    return tuple("pixel " + ",".join(str(i) for i in at) for at in np.ndindex(*shape))


def read_cifar(archive: bytes, names: tuple[str, ...], what: str) -> tuple[Array, Array, Array]:
    """Decode the archive ``part/CLASS/NNNN.jpg``: pixels (60000, 3072) uint8, row by row, red green blue;
    codes (60000,) into ``names``; and which rows are of the test part.  Order: train, then test, by class and
    number. InputError: Pillow is not installed, or an image is damaged.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError(
            "cifar10 is an archive of JPEG files and needs Pillow, which is not installed; run: pip "
            "install pillow"
        ) from error
    found = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                if member.isfile() and (handle := tar.extractfile(member)) is not None:
                    part, name, number = member.name.split("/")
                    with Image.open(io.BytesIO(handle.read())) as image:
                        pixels = image.convert("RGB").tobytes()
                    found.append((part == "test", names.index(name), number, pixels))
    except (tarfile.TarError, UnidentifiedImageError, OSError, EOFError, ValueError) as error:
        raise InputError(
            f"{what} is not the expected archive of JPEG files: {error}; get it again"
        ) from error
    found.sort(key=lambda image: image[:3])
    pixels = np.frombuffer(b"".join(image[3] for image in found), np.uint8).reshape(len(found), -1)
    return pixels, np.array([image[1] for image in found]), np.array([image[0] for image in found])
