// SPDX-License-Identifier: Apache-2.0
#include "target/fast_form.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "onnx/expr.h"
#include "target/every_graph.h"
#include "target/kernel_facts.h"
#include "target/reduction.h"

namespace jaxport::target {
namespace {

using onnx::Args;
using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;
using MaybeValue = std::optional<Value>;

// Whether it is known that there are fewer elements.
bool is_few(const Dims& shape, std::int64_t limit) {
  Dim count = 1;
  for (const Dim& size : shape) count = count * size;
  return count.is_static() && count.value() < limit;
}

// Below these sizes the op takes less time than its form: at 64 elements 0.73 and 0.94 of it, at
// 1024 elements 1.7 and 2.5 times as long.
constexpr std::int64_t kFewestOfSoftplus = 256, kFewestOfMish = 128;

// softplus(x) = max(x, 0) + log(1 + e) with e = exp(-|x|). 1 + e is rounded to u, and e - (u - 1)
// is exactly what was lost: where e is small, the whole logarithm.
MaybeValue softplus(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  if (is_few(x.shape(), kFewestOfSoftplus)) return {};
  const Value e = exp(-abs(x)), u = e + 1, lost = e - (u - 1);
  return op.Relu(x) + (log(u) + lost);
}

// tanh(softplus(x)) = w / (w + 2) with w = n (n + 2), n = exp(x), which is 1 from 20 on.
MaybeValue mish(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  if (is_few(x.shape(), kFewestOfMish)) return {};
  const Value n = exp(clip(x, -std::numeric_limits<double>::infinity(), 20)), w = n * (n + 2);
  return x * (w / (w + 2));
}

// How many elements there are at least: a size that is not known may be 1.
std::int64_t fewest_elements(const Dims& shape) {
  std::int64_t count = 1;
  for (const Dim& size : shape) {
    if (size.is_static()) count *= size.value();
  }
  return count;
}

// Below these sizes the op takes as long as its form.
constexpr std::int64_t kFewestRows = 16, kFewestColumns = 8, kFewestElements = 4096;
constexpr std::int64_t kMostRows = 4096;  // numbers of the vector, which the file holds

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
bool is_between(const Dim& size, std::int64_t least, std::int64_t most) {
  return size.is_static() && least <= size.value() && size.value() <= most;
}

// sign(x) = x * 2^253, at most 1: any number that is not 0 is beyond 1 then.
MaybeValue sign(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  if (fewest_elements(x.shape()) < kFewestElements) return {};
  constexpr double kLarge = 0x1p127;
  return clip(x * kLarge * kLarge, -1, 1);
}

// The largest or the smallest truth value is that of numbers of 8 bits.
MaybeValue reduction_of_numbers(Builder& op, const Node& node, const Reduction& reduction) {
  if (fewest_elements(reduction.x.shape()) < kFewestElements) return {};
  const Value numbers = cast(reduction.x, DType::kU8);
  return cast(reduced(op, node.op, numbers, reduction.axes, reduction.keeps_dims), DType::kBool);
}

// A sum or a mean of the rows of matrices: a vector times them. All sizes must be known, because
// ONNX Runtime's MatMul of a vector and a batch of no matrices is an error.
MaybeValue product_with_vector(Builder& op, const Node& node, const Reduction& reduction) {
  const Dims& shape = reduction.x.shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (rank < 2 || reduction.axes != Ints{rank - 2}) return {};
  if (!std::ranges::all_of(shape, [](const Dim& size) { return is_between(size, 1, kAny); }))
    return {};
  const Dim& rows = shape.end()[-2];
  if (!is_between(rows, kFewestRows, kMostRows)) return {};
  const std::int64_t columns = std::max(kFewestColumns, kFewestElements / rows.value());
  if (!is_between(shape.back(), columns, kAny)) return {};
  const Shape vector = reduction.keeps_dims ? Shape{1, rows.value()} : Shape{rows.value()};
  const double weight = node.op == "ReduceMean" ? 1.0 / static_cast<double>(rows.value()) : 1;
  const Shape strides(vector.size(), 0);
  return op.MatMul(op.weight({scalar(DType::kF32, weight), 0, vector, strides}, vector, ""),
                   reduction.x);
}

// The axes behind the last one that stays in between, where axes are reduced, stay, are reduced and
// stay again, or the reverse: the kernels know up to three such groups, sizes of 1 apart.
Ints last_group(const Reduction& reduction) {
  constexpr int kMostGroups = 3;
  const Dims& shape = reduction.x.shape();
  Ints last;
  int groups = 0;
  bool was_reduced = false;
  for (auto axis = static_cast<std::int64_t>(shape.size()) - 1; axis >= 0; --axis) {
    if (shape[static_cast<std::size_t>(axis)].is_one()) continue;
    const bool is_reduced = std::ranges::find(reduction.axes, axis) != reduction.axes.end();
    if (groups == 0 || is_reduced != was_reduced) ++groups;
    was_reduced = is_reduced;
    if (is_reduced && groups <= 2) last.insert(last.begin(), axis);
  }
  return groups > kMostGroups ? last : Ints{};
}

// One group of axes after the other, the last first.
MaybeValue group_by_group(Builder& op, const Node& node, const Reduction& reduction) {
  if (fewest_elements(reduction.x.shape()) < kFewestElements) return {};
  const Ints last = last_group(reduction);
  if (last.empty()) return {};
  Ints others;  // with their places when the last are gone
  for (std::int64_t axis : reduction.axes) {
    if (std::ranges::find(last, axis) != last.end()) continue;
    const auto before = std::ranges::count_if(last, [&](std::int64_t gone) { return gone < axis; });
    others.push_back(reduction.keeps_dims ? axis : axis - before);
  }
  const Value part = reduced(op, node.op, reduction.x, last, reduction.keeps_dims);
  return reduced(op, node.op, part, others, reduction.keeps_dims);
}

// --- other orders of the same work

// A running sum along the last axis adds element by element; along the first, row by row.
MaybeValue running_sum(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  const Tensor* axis = op.known(node.in[1]);
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (axis == nullptr || rank < 2) return {};
  if (axis->int_at(0) != -1 && axis->int_at(0) != rank - 1) return {};
  if (fewest_elements(x.shape()) < kFewestElements) return {};
  if (fewest_elements({x.shape().begin(), x.shape().end() - 1}) < kFewestRows) return {};
  Ints to_front = {rank - 1}, to_back;
  for (std::int64_t i = 0; i + 1 < rank; ++i) {
    to_front.push_back(i);
    to_back.push_back(i + 1);
  }
  to_back.push_back(0);
  Args directions;
  for (const char* name : {"exclusive", "reverse"}) {
    if (const onnx::Attribute* attr = node.attr(name))
      directions.emplace_back(name, std::get<std::int64_t>(attr->value));
  }
  const Value rows = op.Transpose(x, Args{{"perm", to_front}});
  const Value sums = op.call("CumSum", {rows, op.constant(int_scalar(DType::kI64, 0))}, directions);
  return op.Transpose(sums, Args{{"perm", to_back}});
}

// Sizes for a Reshape, of which only the first may not be known.
std::optional<Ints> known_sizes(const Dims& dims) {
  Ints sizes;
  for (const Dim& size : dims) {
    if (!size.is_static() && &size != &dims.front()) return std::nullopt;
    sizes.push_back(size.is_static() ? size.value() : -1);
  }
  return sizes;
}

bool takes_nearest_below(const Node& node) {
  const auto is = [&](std::string_view name, std::string_view value) {
    const onnx::Attribute* attr = node.attr(name);
    return attr != nullptr && std::get<std::string>(attr->value) == value;
  };
  const bool others_are_absent =
      node.attr("keep_aspect_ratio_policy") == nullptr && node.attr("antialias") == nullptr;
  return is("mode", "nearest") && is("coordinate_transformation_mode", "asymmetric") &&
         is("nearest_mode", "floor") && others_are_absent;
}

// Images with the channels last, each pixel repeated: Tile repeats the pixels of all rows of
// channels, and Gather whole rows of pixels.
MaybeValue repeated_pixels(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  const auto& type = op.info(node.out[0]).type;
  if (x.rank() != 4 || !takes_nearest_below(node) || !type || !type->shape) return {};
  const Dims& to = *type->shape;
  const auto sizes = known_sizes(x.shape());
  if (!sizes || to.size() != 4 || to[0] != x.shape()[0] || to[3] != x.shape()[3]) return {};
  const std::int64_t height = (*sizes)[1], width = (*sizes)[2], channels = (*sizes)[3];
  if (height < 1 || width < 1 || channels < kFewestColumns) return {};
  if (fewest_elements(x.shape()) < kFewestElements) return {};
  const auto times = [&](std::size_t axis) {
    const std::int64_t size = (*sizes)[axis];
    const bool is_multiple = to[axis].is_static() && to[axis].value() % size == 0;
    return is_multiple ? to[axis].value() / size : 0;
  };
  const std::int64_t down = times(1), across = times(2);
  if (down < 1 || across < 1 || down * across == 1) return {};
  const auto reshaped = [&](const Value& value, Ints wanted, Dims shape) {
    return op.call_with_shape("Reshape", {value, op.ints(std::move(wanted))}, {}, std::move(shape));
  };
  const Dim& images = x.shape()[0];
  const std::int64_t row = width * across * channels;
  const Value pixels = reshaped(x, {-1, channels}, {images * height * width, channels});
  const Value wide = op.call_with_shape("Tile", {pixels, op.ints({1, across})}, {},
                                        {images * height * width, across * channels});
  const Value rows = reshaped(wide, {-1, height, row}, {images, height, row});
  Ints places;
  for (std::int64_t i = 0; i < height * down; ++i) places.push_back(i / down);
  const Value tall = op.Gather(rows, op.ints(places), Args{{"axis", 1}});
  return reshaped(tall, {-1, height * down, width * across, channels}, to);
}

// --- which node has a form

std::optional<DType> operand_dtype(const Model& model, const Node& node) {
  if (!node.domain.empty() || node.in.empty() || node.in[0] == onnx::kAbsent) return std::nullopt;
  const auto& type = model.values[node.in[0]].type;
  return type && type->shape ? std::optional(type->dtype) : std::nullopt;
}

MaybeValue fast_reduction(Builder& op, const Node& node, DType dtype, const KernelFacts& facts) {
  const std::optional<Reduction> reduction = reduction_of(op, node);
  if (!reduction || reduction->axes.empty()) return {};
  if (dtype == DType::kBool) {
    return facts.has_slow_bool_reduction ? reduction_of_numbers(op, node, *reduction)
                                         : MaybeValue();
  }
  const bool is_sum = node.op == "ReduceSum" || node.op == "ReduceMean";
  MaybeValue result;
  if (is_sum && facts.has_slow_column_sum) result = product_with_vector(op, node, *reduction);
  if (!result && facts.has_slow_scattered_axes) result = group_by_group(op, node, *reduction);
  return result;
}

MaybeValue fast_form(Builder& op, const Node& node, const KernelFacts& facts) {
  constexpr std::string_view kReductions[] = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"};
  const std::optional<DType> dtype = operand_dtype(op.model(), node);
  if (dtype != DType::kF32 && dtype != DType::kBool) return {};
  if (std::ranges::find(kReductions, node.op) != std::end(kReductions)) {
    return fast_reduction(op, node, *dtype, facts);
  }
  if (dtype == DType::kBool) return {};
  if (node.op == "Softplus" && facts.has_slow_softplus) return softplus(op, node);
  if (node.op == "Mish" && facts.has_slow_softplus) return mish(op, node);
  if (node.op == "CumSum" && facts.has_slow_row_cumsum) return running_sum(op, node);
  if (node.op == "Resize" && facts.has_slow_pixel_repeat) return repeated_pixels(op, node);
  return node.op == "Sign" && facts.has_slow_sign ? sign(op, node) : MaybeValue();
}

class FastForms {
 public:
  FastForms(Graph& graph, Builder& op, const KernelFacts& facts)
      : graph_(graph), op_(op), facts_(facts) {}

  bool run() {
    bool changed = false;
    for (Node& node : std::exchange(graph_.nodes, {})) {
      op_.set_origin(op_.model().origins[node.origin]);
      if (const MaybeValue form = fast_form(op_, node, facts_)) {
        name_result(node, form->id());
        changed = true;
      } else {
        graph_.nodes.push_back(std::move(node));
      }
    }
    return changed;
  }

 private:
  // The last node of the form gives the result of the node. A form that stood there already,
  // because an equal node had it, has a name.
  void name_result(const Node& node, ValueId result) {
    Node& last = graph_.nodes.back();
    if (last.out == std::vector{result}) {
      last.out = node.out;
      names_.emplace(result, node.out[0]);
      return;
    }
    const auto named = names_.find(result);
    Node same;
    same.op = "Identity";
    same.in = {named == names_.end() ? result : named->second};
    same.out = {node.out[0]};
    same.origin = node.origin;
    graph_.nodes.push_back(std::move(same));
  }

  Graph& graph_;
  Builder& op_;
  const KernelFacts& facts_;
  std::map<ValueId, ValueId> names_;
};

}  // namespace

bool write_fast_forms(Model& model, const Target& target) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    return FastForms(graph, op, kernel_facts(target)).run();
  });
}

}  // namespace jaxport::target
