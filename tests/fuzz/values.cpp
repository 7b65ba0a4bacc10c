// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common.h"
#include "eval/eval.h"
#include "rng.h"

namespace jaxport::fuzz {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

DimBindings sizes_of(const front::Function& function, std::int64_t batch) {
  std::vector<std::string> symbols;
  for (front::ValueId id : function.params) {
    for (const Dim& dim : function.type(id).shape) collect_symbols(dim, symbols);
  }
  DimBindings sizes;
  for (const std::string& symbol : symbols) {
    sizes.try_emplace(symbol, batch + 2 * std::ssize(sizes));
  }
  return sizes;
}

double number(Numbers numbers, Rng& rng) {
  static constexpr double kTies[] = {0, -0.0, 1, 1, -1, 2, 0.5, 1.5};
  static constexpr double kHuge[] = {1e18, -1e18, 3e38, -3e38, 1e10, -1e10};
  static constexpr double kTiny[] = {1e-30, -1e-30, 1e-40, 1e-45, 0, -1e-12};
  switch (numbers) {
    case Numbers::kTies:
      return rng.of(kTies);
    case Numbers::kPositive:
      return 0.05 + 0.9 * rng.uniform();
    case Numbers::kSmall:
      return 0.1 * rng.bell();
    case Numbers::kZero:
      return rng.coin() ? 0.0 : -0.0;
    case Numbers::kShifted:
      return 8 + 0.25 * rng.bell();
    case Numbers::kLarge:
      return rng.one_in(3) ? 3e3 * rng.bell() : 30 * rng.bell();
    case Numbers::kHuge:
      return rng.one_in(4) ? rng.of(kHuge) : rng.bell();
    case Numbers::kTiny:
      return rng.one_in(2) ? rng.of(kTiny) : rng.bell();
    default:
      return 0.3 + 1.4 * rng.bell();
  }
}

void fill_floats(double* into, const Shape& shape, const ValueKind& kind, Rng& rng,
                 bool is_special) {
  const std::int64_t count = element_count(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] = static_cast<double>(static_cast<float>(number(kind.numbers, rng)));
  }
  if (count == 0 || !is_special) return;
  const auto at = static_cast<std::int64_t>(rng.below(static_cast<std::size_t>(count)));
  if (kind.numbers == Numbers::kInfinite) into[at] = rng.coin() ? kInf : -kInf;
  if (kind.numbers == Numbers::kNan) into[at] = kNan;
  if (kind.numbers == Numbers::kLow) {
    const std::int64_t row = shape.empty() ? 1 : shape.back();
    std::fill_n(into + at / row * row, row, -kInf);
  }
}

void fill_mask(double* into, const Shape& shape, Masks masks, Rng& rng) {
  const std::int64_t count = element_count(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] = masks == Masks::kAllTrue || (masks != Masks::kAllFalse && rng.coin()) ? 1 : 0;
  }
  if (masks != Masks::kRowFalse || count == 0 || shape.empty()) return;
  const std::int64_t row = shape.back();
  const auto at = static_cast<std::int64_t>(rng.below(static_cast<std::size_t>(count)));
  std::fill_n(into + at / row * row, row, 0.0);
}

}  // namespace

const std::vector<ValueKind>& kinds() {
  using enum Numbers;
  using enum Masks;
  static const std::vector<ValueKind> kKinds{
      {"ordinary", kOrdinary, kRandom, 2},
      {"all masked", kOrdinary, kAllFalse, 2},
      {"a row masked", kOrdinary, kRowFalse, 5},
      {"positive", kPositive, kRandom, 1},
      {"ties", kTies, kRandom, 2},
      {"shifted", kShifted, kAllTrue, 2},
      {"large", kLarge, kRandom, 1},
      {"huge", kHuge, kRandom, 2},
      {"tiny", kTiny, kRowFalse, 2},
      {"infinite", kInfinite, kRandom, 2},
      {"nan", Numbers::kNan, kRandom, 2},
      {"low", kLow, kRowFalse, 2},
      {"small", kSmall, kRandom, 2},
      {"zero", kZero, kRandom, 1},
      {"large, all masked", kLarge, kAllFalse, 1},
      {"empty", kOrdinary, kRandom, 0},
  };
  return kKinds;
}

std::vector<Tensor> inputs(const front::Function& function, const ValueKind& kind,
                           std::uint64_t seed) {
  Rng rng(seed * 31 + static_cast<std::uint64_t>(kind.numbers) * 7 +
          static_cast<std::uint64_t>(kind.masks));
  const DimBindings sizes = sizes_of(function, kind.batch);
  const std::size_t special = rng.below(function.params.size());
  std::vector<Tensor> tensors;
  for (front::ValueId id : function.params) {
    const front::Type& type = function.type(id);
    Shape shape;
    for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, sizes));
    MutableTensor wide = allocate(DType::kF64, shape);
    if (type.dtype == DType::kBool) {
      fill_mask(wide.as<double>(), shape, kind.masks, rng);
    } else if (is_integer(type.dtype)) {
      for (std::int64_t i = 0; i < wide.tensor.size(); ++i) {
        wide.as<double>()[i] = static_cast<double>(rng.below(4));
      }
    } else {
      fill_floats(wide.as<double>(), shape, kind, rng, tensors.size() == special);
    }
    tensors.push_back(eval::cast(wide.tensor, type.dtype));
  }
  return tensors;
}

std::vector<Tensor> cast_all(const std::vector<Tensor>& inputs, DType from, DType to) {
  std::vector<Tensor> result = inputs;
  for (Tensor& tensor : result) {
    if (tensor.dtype == from) tensor = eval::cast(tensor, to);
  }
  return result;
}

}  // namespace jaxport::fuzz
