# SPDX-License-Identifier: Apache-2.0
"""Damage to files: what an editor, a disk or an attacker may do to a .jir or .onnx file."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

INTEGERS = (0, 1, 2, 3, 7, -1, -2, 64, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
DTYPES = ("bool", "i8", "i32", "i64", "u8", "u64", "bf16", "f16", "f32", "f64", "c64", "key")
PRIMITIVES = (
    *("add", "mul", "exp", "max", "eq", "select_n", "convert_element_type", "clamp", "pow"),
    *("reshape", "transpose", "broadcast_in_dim", "squeeze", "concatenate", "slice", "pad", "rev"),
    *("reduce_sum", "reduce_max", "argmax", "cumsum", "sort", "top_k", "iota", "dot_general"),
    *("gather", "scatter-add", "dynamic_slice", "dynamic_update_slice", "scan", "while", "cond"),
    *("reduce_window_max", "conv_general_dilated", "jit", "split", "tile", "fft", "route"),
)
TOKEN = re.compile(r'%[\w.]+|@[\w.]+|[A-Za-z_][\w-]*|-?\d+(?:\.\d+)?|"[^"\n]*"|[^\s\w]')


# --- text


def mutated_text(text: str, others: list[str], rng: random.Random) -> str:
    """One to three changes to the tokens or lines of a program."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(TEXT_CHANGES)(text, others, rng)
    return text


def _tokens(text: str, pattern: str = "") -> list[re.Match[str]]:
    return [m for m in TOKEN.finditer(text) if not pattern or re.fullmatch(pattern, m[0])]


def _replaced(text: str, matches: list[re.Match[str]], new: str, rng: random.Random) -> str:
    if not matches:
        return text
    chosen = rng.choice(matches)
    return text[: chosen.start()] + new + text[chosen.end() :]


def _other_number(text: str, _: list[str], rng: random.Random) -> str:
    new = rng.choice(INTEGERS) if rng.random() < 0.3 else rng.randint(-1, 8)
    return _replaced(text, _tokens(text, r"-?\d+"), str(new), rng)


def _other_float(text: str, _: list[str], rng: random.Random) -> str:
    new = rng.choice(("0.0", "-0.0", "1e30", "-1e300", "inf", "nan", "1e-45"))
    return _replaced(text, _tokens(text, r"-?\d+\.\d+"), new, rng)


def _other_dtype(text: str, _: list[str], rng: random.Random) -> str:
    return _replaced(text, _tokens(text, "|".join(DTYPES)), rng.choice(DTYPES), rng)


def _other_primitive(text: str, _: list[str], rng: random.Random) -> str:
    return _replaced(text, _tokens(text, "|".join(PRIMITIVES)), rng.choice(PRIMITIVES), rng)


def _other_value(text: str, _: list[str], rng: random.Random) -> str:
    values = _tokens(text, r"%[\w.]+")
    return _replaced(text, values, rng.choice(values)[0] if values else "", rng)


def _other_token(text: str, _: list[str], rng: random.Random) -> str:
    tokens = _tokens(text)
    return _replaced(text, tokens, rng.choice(tokens)[0] if tokens else "", rng)


def _no_token(text: str, _: list[str], rng: random.Random) -> str:
    return _replaced(text, _tokens(text), "", rng)


def _symbolic_size(text: str, _: list[str], rng: random.Random) -> str:
    new = rng.choice(("B", "T", "2*B", "B + 1", "B - 1", "floordiv(B, 2)", "B*T", "max(B, 3)"))
    return _replaced(text, _tokens(text, r"\d+|B|T"), new, rng)


def _lines(text: str, _: list[str], rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines.pop(at) if rng.random() < 0.7 else lines[at]
    if rng.random() < 0.5:
        lines.insert(to, line)
    return "".join(lines)


def _line_of_another(text: str, others: list[str], rng: random.Random) -> str:
    lines, foreign = text.splitlines(keepends=True), rng.choice(others).splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(foreign))
    return "".join(lines)


def _bytes_of_text(text: str, _: list[str], rng: random.Random) -> str:
    return mutated_bytes(text.encode(), [], rng).decode("latin-1")


TEXT_CHANGES = (
    *(_other_number, _other_number, _other_number, _other_dtype, _other_primitive, _other_value),
    *(_other_value, _other_token, _no_token, _other_float, _symbolic_size, _lines),
    *(_line_of_another, _bytes_of_text),
)


# --- bytes


def mutated_bytes(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to four changes to single bytes, or to parts of them."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 1, 4, 16, len(data))))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:at] + data[at:end] + data[at:]
        elif kind == 3 and others:
            source = rng.choice(others)
            data = data[:at] + source[rng.randrange(len(source)) :]
        else:
            data = data[:at] + rng.randbytes(end - at if end - at < 5 else 1) + data[end:]
    return data


# --- protobuf

VARINT, FIXED64, BLOCK, FIXED32 = 0, 1, 2, 5


@dataclass
class Field:
    """One field of a message; `content` is a number, bytes, or the fields of a message."""

    number: int
    kind: int
    content: int | bytes | list[Field]


def mutated_model(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to three changes to the fields of a model, so that sizes around them still fit."""
    fields, foreign = message(data), message(rng.choice(others))
    if fields is None or foreign is None:
        return mutated_bytes(data, others, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change_field(_some_list(fields, rng), _some_list(foreign, rng), rng)
    return encoded(fields)


def _some_list(fields: list[Field], rng: random.Random) -> list[Field]:
    """The fields of some message inside, or of the whole."""
    while True:
        inner = [f.content for f in fields if isinstance(f.content, list) and f.content]
        if not inner or rng.random() < 0.2:
            return fields
        fields = rng.choice(inner)


def _change_field(fields: list[Field], foreign: list[Field], rng: random.Random) -> None:
    if not fields:
        return
    at = rng.randrange(len(fields))
    field = fields[at]
    kind = rng.randrange(8)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields.insert(rng.randrange(len(fields) + 1), field)
    elif kind == 2 and foreign:
        fields.insert(at, rng.choice(foreign))
    elif kind == 3:
        field.number = rng.randint(1, 30)
    elif isinstance(field.content, int):
        field.content = rng.choice(INTEGERS) % 2**64 if rng.random() < 0.5 else rng.randint(0, 30)
    elif isinstance(field.content, bytes):
        swapped = [f.content for f in foreign if isinstance(f.content, bytes)]
        use_other = swapped and rng.random() < 0.5
        field.content = rng.choice(swapped) if use_other else mutated_bytes(field.content, [], rng)
    else:
        _change_field(field.content, foreign, rng)


def message(data: bytes) -> list[Field] | None:
    """The fields of a message; None for bytes that are none."""
    fields, at = [], 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0 or at > len(data) or kind not in (VARINT, FIXED64, BLOCK, FIXED32):
            return None
        content: int | bytes | list[Field]
        if kind == VARINT:
            content, at = _varint(data, at)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(kind, 0)
            if kind == BLOCK:
                size, at = _varint(data, at)
            if at + size > len(data):
                return None
            content, at = data[at : at + size], at + size
            if kind == BLOCK and size > 1:
                content = message(content) or content
        fields.append(Field(number, kind, content))
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            break
    return value, at


def encoded(fields: list[Field]) -> bytes:
    parts = []
    for field in fields:
        parts.append(_encoded_varint(field.number << 3 | field.kind))
        content = encoded(field.content) if isinstance(field.content, list) else field.content
        if isinstance(content, int):
            parts.append(_encoded_varint(content))
        else:
            size = _encoded_varint(len(content)) if field.kind == BLOCK else b""
            parts.append(size + content)
    return b"".join(parts)


def _encoded_varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
