// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "jaxport/error.h"
#include "support/dtype.h"
#include "support/hash.h"
#include "support/hash_index.h"
#include "support/tensor.h"
#include "support/text.h"

namespace jaxport {
namespace {

constexpr DType kAllTypes[] = {
    DType::kBool,      DType::kI4,       DType::kI8,         DType::kI16,    DType::kI32,
    DType::kI64,       DType::kU4,       DType::kU8,         DType::kU16,    DType::kU32,
    DType::kU64,       DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
    DType::kF8E8M0FNU, DType::kF4E2M1FN, DType::kBF16,       DType::kF16,    DType::kF32,
    DType::kF64,       DType::kC64,      DType::kC128,       DType::kString, DType::kKey};

constexpr DType kSmallFloats[] = {DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                  DType::kF8E5M2FNUZ, DType::kF8E8M0FNU,  DType::kF4E2M1FN,
                                  DType::kBF16,       DType::kF16};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// --- errors

TEST(Error, renders_every_part_in_order) {
  const Error error = Error("E012", "no lowering for primitive 'approx_top_k' at opset 21")
                          .at("model.py:42 in Router.__call__")
                          .equation("%1:f32[4] = approx_top_k[k=4] %0:f32[1024]")
                          .note("also missing in this model: qr (3 uses)")
                          .help("use lax.top_k");
  EXPECT_STREQ(error.what(),
               "error[JXP-E012]: no lowering for primitive 'approx_top_k' at opset 21\n"
               "  at model.py:42 in Router.__call__\n"
               "  equation: %1:f32[4] = approx_top_k[k=4] %0:f32[1024]\n"
               "  also missing in this model: qr (3 uses)\n"
               "  help: use lax.top_k; see docs/errors.md#e012");
}

TEST(Error, without_help_points_to_the_page) {
  EXPECT_STREQ(Error("E021", "x").what(), "error[JXP-E021]: x\n  help: see docs/errors.md#e021");
}

TEST(Error, a_bug_asks_for_a_report) {
  const std::string text = Error("BUG", "the impossible").what();
  EXPECT_EQ(text.find("error[JXP-BUG]: the impossible\n"), 0u);
  EXPECT_NE(text.find("please report it"), std::string::npos);
  EXPECT_EQ(text.find("docs/errors.md"), std::string::npos);
}

// --- dtypes

TEST(DType, names_and_numbers_lead_back) {
  for (const DType dtype : kAllTypes) {
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    if (dtype != DType::kKey) {
      EXPECT_EQ(dtype_from_onnx(onnx_number(dtype)), dtype);
    }
  }
  EXPECT_EQ(dtype_from_numpy("bfloat16"), DType::kBF16);
  EXPECT_EQ(dtype_from_numpy("key<rbg>"), DType::kKey);
  EXPECT_EQ(dtype_from_name("float32"), std::nullopt);
  EXPECT_EQ(dtype_from_onnx(0), std::nullopt);
  EXPECT_EQ(dtype_from_onnx(99), std::nullopt);
}

TEST(DType, widths_and_kinds) {
  EXPECT_EQ(byte_width(DType::kI4), 1);
  EXPECT_EQ(bit_width(DType::kI4), 4);
  EXPECT_EQ(bit_width(DType::kF32), 32);
  EXPECT_TRUE(is_float(DType::kF4E2M1FN));
  EXPECT_FALSE(is_float(DType::kC64));
  EXPECT_TRUE(is_integer(DType::kU4));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_EQ(mantissa_bits(DType::kBF16), 7);
}

// --- hashes

TEST(Hash, every_byte_and_the_length_count) {
  std::string text(100, 'a');
  const std::uint64_t original = hash_text(text);
  for (char& c : text) {
    c = 'b';
    EXPECT_NE(hash_text(text), original);
    c = 'a';
  }
  EXPECT_EQ(hash_text(text), original);
  EXPECT_NE(hash_text(std::string(3, '\0')), hash_text(std::string(4, '\0')));
  EXPECT_NE(hash_text("a", 1), hash_text("a", 2));
}

TEST(Hash, is_the_same_on_every_machine) {
  EXPECT_EQ(mix(1, 2), 3965022595533706929u);
  EXPECT_EQ(hash_text("jaxport, a longer text of more than 32 bytes"), 611677834644321441u);
}

// --- text

TEST(Text, excerpts_are_short_printable_utf8) {
  EXPECT_EQ(excerpt("plain ü"), "plain ü");
  EXPECT_EQ(excerpt("a\nb\x01\xff"), "a\\x0ab\\x01\\xff");
  EXPECT_EQ(excerpt("abcdef", 3), "abc…");
  EXPECT_EQ(excerpt("aüüü", 2), "aü…");
}

TEST(Text, only_valid_utf8_counts_as_a_character) {
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xf0\x9f\x98\x80"), 4u);
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3"}) {
    EXPECT_EQ(utf8_length(bad), 0u);
  }
}

// --- small floats

TEST(SmallFloat, every_code_survives_the_way_to_double_and_back) {
  for (const DType dtype : kSmallFloats) {
    for (int code = 0; code < 1 << bit_width(dtype); ++code) {
      const auto bits = static_cast<std::uint16_t>(code);
      const double value = small_float_to_double(dtype, bits);
      if (std::isnan(value)) continue;
      EXPECT_EQ(double_to_small_float(dtype, value), bits) << name_of(dtype) << ' ' << code;
    }
  }
}

TEST(SmallFloat, overflow_gives_infinity_nan_or_the_largest_value) {
  EXPECT_EQ(double_to_small_float(DType::kF8E4M3FN, 464), 0x7e);  // ties to even: 448
  EXPECT_EQ(double_to_small_float(DType::kF8E4M3FN, 465), 0x7f);
  EXPECT_EQ(double_to_small_float(DType::kF8E4M3FNUZ, 1e9), 0x80);
  EXPECT_EQ(double_to_small_float(DType::kF8E5M2, -1e300), 0xfc);
  EXPECT_EQ(double_to_small_float(DType::kF4E2M1FN, -kInf), 0xf);
  EXPECT_EQ(double_to_small_float(DType::kF16, 65520), 0x7c00);
  EXPECT_EQ(double_to_small_float(DType::kF16, 65519), 0x7bff);
  EXPECT_EQ(double_to_small_float(DType::kBF16, 3.4e38), 0x7f80);
}

TEST(SmallFloat, special_values) {
  EXPECT_EQ(double_to_small_float(DType::kF8E4M3FNUZ, -0.0), 0);
  EXPECT_EQ(double_to_small_float(DType::kF8E4M3FN, -0.0), 0x80);
  EXPECT_EQ(double_to_small_float(DType::kF8E8M0FNU, 0), 0xff);
  EXPECT_EQ(double_to_small_float(DType::kF8E8M0FNU, 1e-45), 0);
  EXPECT_EQ(double_to_small_float(DType::kF8E8M0FNU, 6), 0x82);
  for (const DType dtype : kSmallFloats) {
    if (dtype == DType::kF4E2M1FN) continue;  // has no NaN
    EXPECT_TRUE(std::isnan(small_float_to_double(dtype, double_to_small_float(dtype, kNaN))));
  }
}

TEST(SmallFloat, doubles_round_once) {
  // 1 + 2^-11 + 2^-40 is above the tie, but a detour through float lands on it.
  EXPECT_EQ(double_to_small_float(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(double_to_small_float(DType::kF16, 1 + 0x1p-11), 0x3c00);
}

TEST(SmallFloat, fast_conversions_agree_with_the_general_ones) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (i % 2 == 0) value = std::ldexp(value, -static_cast<int>(random() % 20));
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_f16(value), double_to_small_float(DType::kF16, value)) << value;
    EXPECT_EQ(float_to_bf16(value), double_to_small_float(DType::kBF16, value)) << value;
  }
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float f16 = f16_to_float(bits), bf16 = bf16_to_float(bits);
    if (!std::isnan(f16)) {
      EXPECT_EQ(f16, small_float_to_double(DType::kF16, bits));
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(bf16, small_float_to_double(DType::kBF16, bits));
    }
    EXPECT_EQ(std::isnan(f16), std::isnan(f16_to_float(float_to_f16(f16))));
    EXPECT_EQ(std::isnan(bf16), std::isnan(bf16_to_float(float_to_bf16(bf16))));
  }
}

// --- tensors

TEST(Tensor, element_count_rejects_what_int64_cannot_hold) {
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{3, 0, std::int64_t{1} << 62, 8}), 0);
  EXPECT_THROW(element_count(Shape{std::int64_t{1} << 62, 2}), Error);
  EXPECT_THROW(element_count(Shape{-1}), Error);
  EXPECT_THROW(allocate(DType::kF64, {std::int64_t{1} << 61}), Error);
}

TEST(Tensor, scalars_of_every_real_dtype_read_back) {
  for (const DType dtype : kAllTypes) {
    if (dtype == DType::kString || dtype == DType::kKey || is_complex(dtype)) continue;
    const Tensor one = scalar(dtype, 1.0);
    EXPECT_EQ(one.at(0), 1.0) << name_of(dtype);
    EXPECT_TRUE(same_bytes(one, int_scalar(dtype, 1))) << name_of(dtype);
  }
  EXPECT_EQ(scalar(DType::kI4, -3).int_at(0), -3);
  EXPECT_EQ(scalar(DType::kI32, kNaN).int_at(0), 0);
  EXPECT_EQ(scalar(DType::kI64, 1e300).int_at(0), INT64_MAX);
  EXPECT_EQ(scalar(DType::kU64, 0x1p63).at(0), 0x1p63);
  EXPECT_EQ(int_scalar(DType::kI64, INT64_MIN).int_at(0), INT64_MIN);
  EXPECT_EQ(scalar(DType::kC64, 2).as<float>()[0], 2);
  EXPECT_THROW(scalar(DType::kKey, 1), Error);
}

TEST(Tensor, equality_and_hash_see_dtype_shape_and_bytes) {
  const Tensor a = int64s(std::vector<std::int64_t>{1, 2, 3, 4});
  Tensor b = int64s(std::vector<std::int64_t>{1, 2, 3, 4});
  EXPECT_TRUE(same_bytes(a, b));
  EXPECT_EQ(content_hash(a), content_hash(b));
  b.shape = {2, 2};
  EXPECT_FALSE(same_bytes(a, b));
  EXPECT_NE(content_hash(a), content_hash(b));
  EXPECT_FALSE(same_bytes(a, int64s(std::vector<std::int64_t>{1, 2, 3, 5})));
}

// --- strided views

Tensor counting(DType dtype, const Shape& shape) {
  MutableTensor out = allocate(dtype, shape);
  const std::size_t bytes = out.tensor.nbytes();
  for (std::size_t i = 0; i < bytes; ++i) out.bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  return out.tensor;
}

std::vector<std::byte> bytes_one_by_one(const StridedView& view) {
  const std::int64_t width = byte_width(view.base.dtype);
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < view.size(); ++i) {
    std::int64_t rest = i, at = view.offset;
    for (std::size_t axis = view.sizes.size(); axis-- > 0;) {
      at += rest % view.sizes[axis] * view.strides[axis];
      rest /= view.sizes[axis];
    }
    const std::byte* element = view.base.data.get() + at * width;
    bytes.insert(bytes.end(), element, element + width);
  }
  return bytes;
}

std::vector<std::byte> bytes_in_chunks(const StridedView& view) {
  std::vector<std::byte> bytes;
  for_each_chunk(view, [&bytes](std::span<const std::byte> chunk) {
    EXPECT_LE(chunk.size(), std::size_t{1} << 20);
    EXPECT_FALSE(chunk.empty());
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  });
  return bytes;
}

TEST(StridedView, a_whole_tensor_is_dense_and_shared) {
  const Tensor tensor = counting(DType::kF32, {3, 1, 5});
  const StridedView view = whole(tensor);
  EXPECT_TRUE(view.is_dense());
  EXPECT_EQ(materialise(view).data, tensor.data);
  const std::byte* seen = nullptr;
  for_each_chunk(view, [&seen](std::span<const std::byte> chunk) { seen = chunk.data(); });
  EXPECT_EQ(seen, tensor.data.get());
}

TEST(StridedView, a_contiguous_window_is_dense) {
  StridedView view = whole(counting(DType::kI16, {4, 6}));
  view.offset = 6;
  view.sizes = {2, 1, 6};
  view.strides = {6, 100, 1};
  EXPECT_TRUE(view.is_dense());
  EXPECT_EQ(bytes_in_chunks(view), bytes_one_by_one(view));
  EXPECT_TRUE(std::ranges::equal(materialise(view).bytes(), bytes_one_by_one(view)));
}

TEST(StridedView, transposes_and_broadcasts_are_not_dense) {
  StridedView view = whole(counting(DType::kF32, {4, 6}));
  view.sizes = {6, 4};
  view.strides = {1, 6};
  EXPECT_FALSE(view.is_dense());
  view.sizes = {2, 4, 6};
  view.strides = {0, 6, 1};
  EXPECT_FALSE(view.is_dense());
  view.sizes = {2, 0, 6};
  EXPECT_TRUE(view.is_dense());
  EXPECT_TRUE(bytes_in_chunks(view).empty());
  EXPECT_EQ(materialise(view).size(), 0);
}

TEST(StridedView, random_views_of_every_width_enumerate_row_major) {
  std::mt19937 random(11);
  const DType widths[] = {DType::kI8, DType::kF16, DType::kF32, DType::kF64, DType::kC128};
  for (int round = 0; round < 500; ++round) {
    StridedView view = whole(counting(widths[round % 5], {2000}));
    std::int64_t reach = 1999;
    for (std::size_t rank = random() % 5; rank > 0; --rank) {
      const std::int64_t size = 1 + random() % 6;
      const std::int64_t stride = random() % (reach / 5 + 1);
      view.sizes.push_back(size);
      view.strides.push_back(stride);
      reach -= (size - 1) * stride;
    }
    view.sizes.erase(view.sizes.begin());
    view.strides.erase(view.strides.begin());
    EXPECT_EQ(bytes_in_chunks(view), bytes_one_by_one(view));
    EXPECT_TRUE(std::ranges::equal(materialise(view).bytes(), bytes_one_by_one(view)));
  }
}

TEST(StridedView, large_views_come_in_chunks) {
  StridedView transposed = whole(counting(DType::kF32, {700, 900}));
  transposed.sizes = {900, 700};
  transposed.strides = {1, 900};
  EXPECT_EQ(bytes_in_chunks(transposed), bytes_one_by_one(transposed));

  StridedView column = whole(counting(DType::kF32, {600000, 2}));  // one row beyond a chunk
  column.sizes = {600000};
  column.strides = {2};
  EXPECT_EQ(bytes_in_chunks(column), bytes_one_by_one(column));

  StridedView rows = whole(counting(DType::kF32, {3, 400000}));  // long runs, handed out in place
  rows.sizes = {2, 300000};
  rows.strides = {800000, 1};
  EXPECT_EQ(bytes_in_chunks(rows), bytes_one_by_one(rows));
}

TEST(StridedView, reversal_has_negative_strides) {
  StridedView view = whole(counting(DType::kI32, {10}));
  view.offset = 9;
  view.strides = {-1};
  EXPECT_FALSE(view.is_dense());
  EXPECT_EQ(bytes_in_chunks(view), bytes_one_by_one(view));
}

TEST(HashIndexTest, finds_the_oldest_match_and_forgets_the_newest) {
  const auto any = [](int) { return true; };
  HashIndex<int> index;
  EXPECT_EQ(index.find(7, any), nullptr);
  for (int i = 0; i < 100; ++i) index.add(7, i);  // one hash: every search is a collision
  EXPECT_EQ(*index.find(7, any), 0);
  EXPECT_EQ(*index.find(7, [](int i) { return i >= 40; }), 40);
  index.shrink(40);
  EXPECT_EQ(index.find(7, [](int i) { return i >= 40; }), nullptr);
  EXPECT_EQ(*index.find(7, [](int i) { return i >= 39; }), 39);
}

TEST(TextSetTest, forgets_what_a_scope_added) {
  TextSet names;
  EXPECT_TRUE(names.insert("outer"));
  const std::size_t outside = names.size();
  EXPECT_TRUE(names.insert("inner"));
  EXPECT_FALSE(names.insert("inner"));
  names.shrink(outside);
  EXPECT_TRUE(names.insert("inner"));
  EXPECT_FALSE(names.insert("outer"));
}

}  // namespace
}  // namespace jaxport
