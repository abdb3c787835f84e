"""The data folder, which the variable P2P_SIM_DATA names: its files, checked against pinned SHA-256 sums."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from p2p_sim.core.errors import InputError

VARIABLE = "P2P_SIM_DATA"

_SUMS = {
    "adult/": {
        "adult.data.gz": "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3",
        "adult.test.gz": "8a2c1bffa6e7ce5abfa43881ae5e87c4311ebc2b3cd526c9c40a43f19f06f799",
    },
    "census-income-kdd/census_income_1994_1995_": {
        "test.csv.gz": "9d476164fbf1fdb9c79af8e567da35102f9309dbc1111740a63c07a437b0f034",
        "train.csv.gz": "3a8265c042a3a804761b804e3fbd2b44d26780fc11848cdc499a439b6ec209c2",
    },
    "cifar10/": {
        "cifar10_jpeg.tar.gz": "67db862c9ba7f22bc80dae7c8801de42feb1196ecb22c863664e1ac890e2656f",
    },
    "fashion-mnist/": {
        "t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
        "t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
        "train-images-idx3-ubyte.gz": "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
        "train-labels-idx1-ubyte.gz": "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
    },
    "magic-telescope/": {
        "telescope.csv.gz": "b7642e2d7c7cab6fb239215e1534ef4fcbb5691dd080a7ac1fd806d14ac3f982",
    },
    "mnist/": {
        "t10k-images-idx3-ubyte.gz": "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
        "t10k-labels-idx1-ubyte.gz": "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
        "train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
        "train-labels-idx1-ubyte.gz": "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
    },
    "open-bandit-clicks/": {
        "bts_all.csv.gz": "1415c069ff9a5de951116850a3a00e07aab64c449555678ae00035359aec267d",
        "bts_men.csv.gz": "92adff7cd752a8734fde9321075c62be5853e6ab8e3a57319bd76f9683170da7",
        "bts_women.csv.gz": "599ca5add90903ad82e3719db099b1ff4ac3692a658878e507bccb0ed50f194b",
        "random_all.csv.gz": "e5f7284292d0a9906e54a1019a8c392cde0106610dbd6dff73af7b7836123bfc",
        "random_men.csv.gz": "1d506bbe0c2fef46e42cdcb1f84f60d965daa6bb16b3e560e92b5bfd58c29da6",
        "random_women.csv.gz": "83e9f38cd0246c73a765206adb8829a28d66b8aed5d3c42b64b49b997ad48c7a",
    },
}
PINNED = {f"{start}{name}": found for start, names in _SUMS.items() for name, found in names.items()}


def folder() -> Path | None:
    """Return the folder that P2P_SIM_DATA names, None if it is not set; raises InputError if it is no folder."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        return None
    try:
        path = Path(named).expanduser()
        path.exists()
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(
            f"{VARIABLE} is {named[:80]!r}, which is no usable path ({error}); set it to the data folder, or unset it"
        ) from error
    if not path.is_dir():
        raise InputError(
            f"{VARIABLE} is {named!r}, which is not a folder; set it to the data folder, or unset it"
        )
    return path


def missing(files: Iterable[str]) -> list[str]:
    """List the files that the folder lacks, all of them when P2P_SIM_DATA is not set."""
    base = folder()
    return [name for name in files if base is None or not (base / name).is_file()]


def read(name: str) -> bytes:
    """Return a pinned file of the folder, unpacked if .gz; raises InputError if unreadable, or not as pinned."""
    base = folder()
    if base is None:
        raise InputError(f"{VARIABLE} is not set; set it to the data folder that holds {name}")
    packed = read_file(base / name)
    found = hashlib.sha256(packed).hexdigest()
    if found != PINNED[name]:
        raise InputError(
            f"{base / name} has SHA-256 {found}; the pinned copy has {PINNED[name]}; the file is damaged or "
            "another version: get it again"
        )
    return packed if name.endswith(".tar.gz") else unpack(packed, str(base / name))


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; raises InputError with the reason if it cannot be read."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file; give the path of a file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}; check the path and its permissions"
        ) from error


def head_of(path: Path, count: int = 4096) -> bytes:
    """Return the first bytes of a file; none if it cannot be read, an error that is left to its reader."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def unpack(data: bytes, what: str) -> bytes:
    """Return data unpacked, if it begins as a gzip file does; raises InputError if it is damaged."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{what} is not a whole gzip file: {error}; get or write it again") from error
