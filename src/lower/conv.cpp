// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "lower/ctx.h"
#include "lower/pad.h"

namespace jaxport::lower {
namespace {

// The operands arrive as [N, C, spatial…] and [O, I, spatial…]; the result leaves as [N, O,
// spatial…].
Order conv_order(const front::Eqn& eqn, std::span<const front::Type>,
                 std::span<const front::Type>) {
  const auto* numbers = front::find(eqn.attrs, "dimension_numbers")->get_if<front::Record>();
  auto spec = [&](std::string_view name) {
    Ints dims;
    for (const auto& [field, value] : numbers->fields) {
      if (field != name) continue;
      for (const front::Attr& dim : *value.get_if<front::List>())
        dims.push_back(*dim.get_if<std::int64_t>());
    }
    return dims;
  };
  return {{spec("lhs_spec"), spec("rhs_spec")}, {spec("out_spec")}};
}

// Groups of the batch become groups of features: [G N, C, …] to [N, G C, …].
Value batch_groups_as_features(Ctx& c, Value x, std::int64_t groups) {
  Dims apart = x.shape(), merged = x.shape();
  apart[0] = floordiv(apart[0], groups);
  merged[0] = apart[0];
  merged[1] = merged[1] * groups;
  apart.insert(apart.begin(), Dim(groups));
  Ints perm(apart.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1]);
  return c.reshape(c.transpose(c.reshape(x, apart), perm), merged);
}

// Negative padding, with what is padded at the other end, and dilation of the input are done ahead
// of the op.
struct Padding {
  PadConfig ahead;    // of all dims
  onnx::Args inside;  // of the op
};
Padding padding_of(Ctx& c) {
  const Ints dilation = c.param<Ints>("lhs_dilation");
  const auto& given = *c.attr("padding").get_if<front::List>();
  if (is_symbolic(given)) return {PadConfig(2 + dilation.size()), {{"auto_pad", "SAME_UPPER"}}};
  Padding padding{PadConfig(2), {}};
  Ints pads, high_ends;  // the low ends of the spatial dims, then the high ends
  for (std::size_t i = 0; i < dilation.size(); ++i) {
    const auto& pair = *given[i].get_if<front::List>();
    const std::int64_t low = *pair[0].get_if<std::int64_t>(),
                       high = *pair[1].get_if<std::int64_t>();
    const bool is_ahead = low < 0 || high < 0;
    padding.ahead.push_back({is_ahead ? low : 0, is_ahead ? high : 0, dilation[i] - 1});
    pads.push_back(is_ahead ? 0 : low);
    high_ends.push_back(is_ahead ? 0 : high);
  }
  pads.insert(pads.end(), high_ends.begin(), high_ends.end());
  padding.inside = {{"pads", pads}};
  return padding;
}

// vmap over kernels makes the batch a factor of the groups.
std::int64_t feature_groups(Ctx& c) {
  const auto* symbolic = c.attr("feature_group_count").get_if<Dim>();
  if (symbolic && !symbolic->is_static()) {
    c.unsupported(
        "there is a kernel for each element of a symbolic dim; ONNX has no number of groups that "
        "is "
        "known at run time only. Give that dim a size");
  }
  return c.param<std::int64_t>("feature_group_count");
}

Results conv_general_dilated(Ctx& c) {
  const DType dtype = c.out_type().dtype;
  Value x = c.cast(c.in(0), dtype);
  const Value weight = c.cast(c.in(1), dtype);
  const auto batch_groups = c.param<std::int64_t>("batch_group_count");
  if (batch_groups != 1) x = batch_groups_as_features(c, x, batch_groups);
  const Padding padding = padding_of(c);
  x = padded(c, x, c.op.scalar_like(x, 0), padding.ahead);
  Ints kernel;
  for (std::size_t i = 2; i < weight.rank(); ++i) kernel.push_back(weight.shape()[i].value());
  onnx::Args args{{"kernel_shape", kernel},
                  {"strides", c.param<Ints>("window_strides")},
                  {"dilations", c.param<Ints>("rhs_dilation")},
                  {"group", batch_groups * feature_groups(c)}};
  args.insert(args.end(), padding.inside.begin(), padding.inside.end());
  if (c.operands().size() == 3) return c.op.Conv(x, weight, c.in(2), args);
  return c.op.Conv(x, weight, args);
}

constexpr Row kRows[] = {{"conv_general_dilated", conv_general_dilated, 0, conv_order}};

}  // namespace

std::span<const Row> conv_rows() { return kRows; }

}  // namespace jaxport::lower
