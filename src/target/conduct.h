// SPDX-License-Identifier: Apache-2.0
// What an op does with its elements, which decides the dtypes that may stand in for another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "support/dtype.h"

namespace jaxport::target {

// How the results of an op follow from integers and truth values.
enum class Conduct : std::uint8_t {
  kCopies,  // results are elements of the operands, whatever they mean
  kOrders,  // results depend on the order of the elements only
  kWraps,   // results modulo 2^n follow from operands modulo 2^n
  kValues,  // results follow from the values
  kReal,    // the op is for floating-point numbers
};
struct OpConduct {
  std::string_view op;
  Conduct integers;
  bool rounds;  // a float result may need more digits than the operands have
};
OpConduct conduct_of(std::string_view op);

// How a value is represented in the wider dtype.
enum class Code : std::uint8_t {
  kCast,
  kBiased,  // u64 as i64 with 2^63 added, u32 as i32 with 2^31 added, which keeps the order
};
struct WideForm {
  DType dtype;
  Code code;
};

// The first of the dtypes that `is_available` says yes to in which an op of this conduct gives the
// right results for operands of dtype `from`; nullopt when there is none.
template <class IsAvailable>
std::optional<WideForm> wide_form(Conduct conduct, DType from, const IsAvailable& is_available);

// Whether the result in the wide dtype is what narrowing and widening it again would give.
bool is_exact(const OpConduct& conduct, DType from, DType to);

// --- implementation

std::optional<Code> code_for(Conduct conduct, DType from, DType to);  // nullopt: `to` cannot do it
std::span<const DType> wide_dtypes();                                 // best first

template <class IsAvailable>
std::optional<WideForm> wide_form(Conduct conduct, DType from, const IsAvailable& is_available) {
  std::optional<WideForm> biased;
  for (DType to : wide_dtypes()) {
    const std::optional<Code> code = code_for(conduct, from, to);
    if (!code || !is_available(to)) continue;
    if (*code == Code::kCast) return WideForm{to, *code};
    if (!biased) biased = WideForm{to, *code};
  }
  return biased;
}

}  // namespace jaxport::target
