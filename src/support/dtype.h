// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace jaxport {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Element types of all three forms. `kKey` is a jax.random key: front IR only, never in ONNX.
enum class DType : std::uint8_t {
  kBool,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF4E2M1FN,
  kBF16,
  kF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kString,
  kKey,
};

// "f32", "bf16", "i64", "bool", …: the spelling of .jir and of error messages.
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// numpy and ml_dtypes spelling: "float32", "bfloat16", "int64", "bool", …
std::optional<DType> dtype_from_numpy(std::string_view name);
// TensorProto.DataType; 0 for kKey. And back; nullopt for a number we do not know.
int onnx_number(DType dtype);
std::optional<DType> dtype_from_onnx(int number);

// Bytes of one element in memory. Sub-byte types take one byte in memory, as in numpy.
int byte_width(DType dtype);
// Bits of one element in an ONNX file: 4 for i4, u4, f4, else 8 * byte_width.
int bit_width(DType dtype);

bool is_float(DType dtype);     // bf16, f16, f32, f64 and the 8-bit and 4-bit floats
bool is_signed(DType dtype);    // signed integers
bool is_unsigned(DType dtype);  // unsigned integers, without bool
bool is_integer(DType dtype);   // signed or unsigned, without bool
bool is_complex(DType dtype);
DType part_dtype(DType dtype);  // of the real part: f32 of c64; a real dtype is its own
// Whether every value of `narrow` is exact in `wide`, an integer, bf16, f16, f32 or f64.
bool holds_exactly(DType wide, DType narrow);
int mantissa_bits(DType dtype);  // explicit bits of a float: 23 for f32; 0 for others

}  // namespace jaxport
