// SPDX-License-Identifier: Apache-2.0
#include "support/dtype.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace jaxport {
namespace {

enum class Kind : std::uint8_t { kOther, kSigned, kUnsigned, kFloat, kComplex };

struct Row {
  DType dtype;
  std::string_view name, numpy;
  int onnx, bytes, bits;
  Kind kind;
  int mantissa;
};

// A key counts as threefry's two 32-bit words. A tensor of strings holds no bytes of its own.
constexpr std::array kRows{
    Row{DType::kBool, "bool", "bool", 9, 1, 8, Kind::kOther, 0},
    Row{DType::kI4, "i4", "int4", 22, 1, 4, Kind::kSigned, 0},
    Row{DType::kI8, "i8", "int8", 3, 1, 8, Kind::kSigned, 0},
    Row{DType::kI16, "i16", "int16", 5, 2, 16, Kind::kSigned, 0},
    Row{DType::kI32, "i32", "int32", 6, 4, 32, Kind::kSigned, 0},
    Row{DType::kI64, "i64", "int64", 7, 8, 64, Kind::kSigned, 0},
    Row{DType::kU4, "u4", "uint4", 21, 1, 4, Kind::kUnsigned, 0},
    Row{DType::kU8, "u8", "uint8", 2, 1, 8, Kind::kUnsigned, 0},
    Row{DType::kU16, "u16", "uint16", 4, 2, 16, Kind::kUnsigned, 0},
    Row{DType::kU32, "u32", "uint32", 12, 4, 32, Kind::kUnsigned, 0},
    Row{DType::kU64, "u64", "uint64", 13, 8, 64, Kind::kUnsigned, 0},
    Row{DType::kF8E4M3FN, "f8_e4m3fn", "float8_e4m3fn", 17, 1, 8, Kind::kFloat, 3},
    Row{DType::kF8E4M3FNUZ, "f8_e4m3fnuz", "float8_e4m3fnuz", 18, 1, 8, Kind::kFloat, 3},
    Row{DType::kF8E5M2, "f8_e5m2", "float8_e5m2", 19, 1, 8, Kind::kFloat, 2},
    Row{DType::kF8E5M2FNUZ, "f8_e5m2fnuz", "float8_e5m2fnuz", 20, 1, 8, Kind::kFloat, 2},
    Row{DType::kF8E8M0FNU, "f8_e8m0fnu", "float8_e8m0fnu", 24, 1, 8, Kind::kFloat, 0},
    Row{DType::kF4E2M1FN, "f4_e2m1fn", "float4_e2m1fn", 23, 1, 4, Kind::kFloat, 1},
    Row{DType::kBF16, "bf16", "bfloat16", 16, 2, 16, Kind::kFloat, 7},
    Row{DType::kF16, "f16", "float16", 10, 2, 16, Kind::kFloat, 10},
    Row{DType::kF32, "f32", "float32", 1, 4, 32, Kind::kFloat, 23},
    Row{DType::kF64, "f64", "float64", 11, 8, 64, Kind::kFloat, 52},
    Row{DType::kC64, "c64", "complex64", 14, 8, 64, Kind::kComplex, 0},
    Row{DType::kC128, "c128", "complex128", 15, 16, 128, Kind::kComplex, 0},
    Row{DType::kString, "string", "str", 8, 0, 0, Kind::kOther, 0},
    Row{DType::kKey, "key", "key<fry>", 0, 8, 64, Kind::kOther, 0},
};

consteval bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype != static_cast<DType>(i)) return false;
  }
  return kRows.back().dtype == DType::kKey;
}
static_assert(rows_follow_the_enum());

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

template <class Field>
std::optional<DType> find(Field Row::*field, const Field& wanted) {
  const auto* found = std::ranges::find(kRows, wanted, field);
  return found == kRows.end() ? std::nullopt : std::optional(found->dtype);
}

}  // namespace

std::string_view name_of(DType dtype) { return row(dtype).name; }
std::optional<DType> dtype_from_name(std::string_view name) { return find(&Row::name, name); }

std::optional<DType> dtype_from_numpy(std::string_view name) {
  if (name.starts_with("key<")) return DType::kKey;  // one spelling for each key algorithm
  return find(&Row::numpy, name);
}

int onnx_number(DType dtype) { return row(dtype).onnx; }
std::optional<DType> dtype_from_onnx(int number) {
  return number == 0 ? std::nullopt : find(&Row::onnx, number);
}

int byte_width(DType dtype) { return row(dtype).bytes; }
int bit_width(DType dtype) { return row(dtype).bits; }

bool is_float(DType dtype) { return row(dtype).kind == Kind::kFloat; }
bool is_signed(DType dtype) { return row(dtype).kind == Kind::kSigned; }
bool is_unsigned(DType dtype) { return row(dtype).kind == Kind::kUnsigned; }
bool is_integer(DType dtype) { return is_signed(dtype) || is_unsigned(dtype); }
bool is_complex(DType dtype) { return row(dtype).kind == Kind::kComplex; }
DType part_dtype(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  return dtype == DType::kC128 ? DType::kF64 : dtype;
}
int mantissa_bits(DType dtype) { return row(dtype).mantissa; }

bool holds_exactly(DType wide, DType narrow) {
  if (wide == narrow) return true;
  const bool is_real =
      wide == DType::kBF16 || wide == DType::kF16 || wide == DType::kF32 || wide == DType::kF64;
  if (narrow == DType::kBool) return is_integer(wide) || is_real;
  // Bits of the magnitude.
  const auto value_bits = [](DType dtype) { return bit_width(dtype) - (is_signed(dtype) ? 1 : 0); };
  if (is_integer(narrow) && is_integer(wide)) {
    return value_bits(wide) >= value_bits(narrow) && (is_signed(wide) || !is_signed(narrow));
  }
  if (is_integer(narrow) && is_real) return mantissa_bits(wide) + 1 >= value_bits(narrow);
  return is_float(narrow) && (wide == DType::kF32 || wide == DType::kF64) &&
         byte_width(wide) > byte_width(narrow);
}

}  // namespace jaxport
