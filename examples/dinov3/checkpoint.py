# SPDX-License-Identifier: Apache-2.0
"""Reads .pth and .safetensors without PyTorch, and writes .safetensors.

Arrays are views of the mapped file: nothing is read before it is used.
"""

import collections
import json
import math
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
ALIGNMENT = 64  # XLA takes memory that begins at such an address without a copy


class CheckpointError(ValueError):
    """A file that is not a checkpoint of tensors."""


# --- .pth: a zip file with a pickle, and the bytes of each storage as a member of its own

STORAGES = {
    "BFloat16Storage": ml_dtypes.bfloat16,
    "BoolStorage": np.bool_,
    "ByteStorage": np.uint8,
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "IntStorage": np.int32,
    "LongStorage": np.int64,
}


class TensorUnpickler(pickle.Unpickler):
    """Knows tensors, their storages and plain containers; refuses every other name."""

    def __init__(self, file: Any, storage_of: Any):
        super().__init__(file)
        self.storage_of = storage_of

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return np.dtype(STORAGES[name])
        known = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
            ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
        }
        if (module, name) not in known:
            raise CheckpointError(f"the checkpoint holds {module}.{name}, which is no tensor")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Array:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise CheckpointError("the checkpoint refers to something that is no storage")
        _, dtype, key, _, count = pid
        return self.storage_of(dtype, str(key), int(count))


def rebuild_tensor(
    storage: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> Array:
    """A tensor as a view of its storage; numpy checks that it lies inside."""
    width = storage.dtype.itemsize
    steps = tuple(step * width for step in strides)
    try:
        return np.ndarray(shape, storage.dtype, storage, offset * width, steps)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"a tensor of shape {shape} leaves its storage") from error


def read_pth(path: Path) -> dict[str, Array]:
    """The tensors of a file that torch.save wrote from a state dict."""
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"{path} is no zip file, so not written by PyTorch 1.6 or later")
    try:
        return state_dict(unpickled(path), path)
    except CheckpointError:
        raise
    except Exception as error:  # a damaged zip file or pickle raises nearly everything
        raise CheckpointError(f"{path} is no checkpoint of tensors: {error}") from error


def unpickled(path: Path) -> Any:
    """What the pickle of a .pth file holds, its tensors as views of the file."""
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise CheckpointError(f"{path} has {len(pickles)} members data.pkl in place of one")
        folder = pickles[0].removesuffix("data.pkl")
        check_byte_order(archive, folder)

        def storage_of(dtype: Any, key: str, count: int) -> Array:
            return mapped_member(path, archive, f"{folder}data/{key}", dtype, count)

        with archive.open(pickles[0]) as file:
            return TensorUnpickler(file, storage_of).load()


def check_byte_order(archive: zipfile.ZipFile, folder: str) -> None:
    name = f"{folder}byteorder"
    if name not in archive.namelist():
        return
    with archive.open(name) as file:
        order = file.read(8)  # not all of it: a small file may unpack to a large one
    if order != b"little":
        raise CheckpointError("the checkpoint was written on a big-endian machine")


def mapped_member(
    path: Path, archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], count: int
) -> Array:
    """A member of the archive as a view of the file; torch.save does not compress."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise CheckpointError(f"{path} lacks the storage {name}") from None
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != count * dtype.itemsize:
        raise CheckpointError(f"{path}: {name} has not the bytes that its tensors need")
    if count == 0:
        return np.empty(0, dtype)
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)  # the local header may have other extra fields
        name_size, extra_size = struct.unpack("<HH", file.read(4))
    start = info.header_offset + 30 + name_size + extra_size
    return np.memmap(path, dtype, "r", start, (count,))


def state_dict(content: Any, path: Path) -> dict[str, Array]:
    """The state dict itself, or the only one inside a dict such as {"teacher": …}."""
    while isinstance(content, dict) and len(content) == 1:
        (inner,) = content.values()
        if not isinstance(inner, dict):
            break
        content = inner
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not a state dict")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise CheckpointError(f"{path}: {name!r} is a {type(value).__name__}, not a tensor")
    return dict(content)


# --- .safetensors: the size of a header, a header in JSON, the bytes of all tensors

DTYPES: dict[str, Any] = {
    "BF16": ml_dtypes.bfloat16,
    "BOOL": np.bool_,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
}


def read_safetensors(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        prefix = file.read(8)
        size = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or size > path.stat().st_size - 8:
            raise CheckpointError(f"{path} is no safetensors file")
        try:
            header = json.loads(file.read(size))
        except ValueError as error:
            raise CheckpointError(f"{path} is no safetensors file: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path} is no safetensors file: its header is no object")
    data = np.memmap(path, np.uint8, "r")[8 + size :]
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    return {name: tensor_of(path, name, entry, data) for name, entry in entries.items()}


def tensor_of(path: Path, name: str, entry: Any, data: Array) -> Array:
    match entry:
        case {"dtype": str(code), "shape": [*shape], "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise CheckpointError(f"{path}: {name} is described by {entry!r:.100}")
    if code not in DTYPES:
        raise CheckpointError(f"{path}: {name} has the dtype {code}")
    dtype = np.dtype(DTYPES[code])
    if not 0 <= begin <= end <= len(data):
        raise CheckpointError(f"{path}: {name} lies outside of the file")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise CheckpointError(f"{path}: {name} has the shape {shape!r:.100}")
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise CheckpointError(f"{path}: {name} has not the bytes that its shape needs")
    try:
        return data[begin:end].view(dtype).reshape(shape)
    except ValueError as error:  # too many dims, or sizes beside a 0 that no array has
        raise CheckpointError(f"{path}: {name} cannot have the shape {shape!r:.100}") from error


def write_safetensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Writes one tensor after the other; the first begins at a multiple of ALIGNMENT."""
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).data)
    part.replace(path)
