// SPDX-License-Identifier: Apache-2.0
// Nodes that compute with small constants only: what lowering writes as a movement or as arithmetic
// of indices is a constant in the file. The evaluator of axis/evaluate/fold.cpp and
// lower/layout/facts.cpp knows JAX's primitives and not these nodes; movements and whole numbers
// are all they need.
#include "pass/fold.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "onnx/attributes.h"
#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::ValueId;

constexpr std::int64_t kMostElements = 1024;

using Call = FoldCall;

// --- movements

std::optional<Tensor> regroup(const Call& call) {
  Tensor result = call.in[0];
  result.shape = call.shape;
  return result;
}

std::optional<Tensor> expand(const Call& call) { return broadcast(call.in[0], call.shape); }

std::optional<Tensor> transpose(const Call& call) {
  const auto perm = ints_attribute(call.node, "perm");
  if (!perm) return std::nullopt;
  const Ints strides = row_major_strides(call.in[0].shape);
  StridedView view{call.in[0], 0, call.shape, {}};
  for (std::int64_t axis : *perm) {
    view.strides.push_back(strides[axis < 0 ? axis + std::ssize(strides) : axis]);
  }
  return materialise(view);
}

std::optional<Tensor> concat(const Call& call) {
  const auto given = int_attribute(call.node, "axis", 0);
  const auto axis = given < 0 ? given + std::ssize(call.shape) : given;
  const std::int64_t rows =
      element_count(std::span(call.shape).first(static_cast<std::size_t>(axis)));
  MutableTensor result = allocate(call.dtype, call.shape);
  if (rows == 0) return result.tensor;
  std::byte* to = result.bytes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const Tensor& part : call.in) {
      const std::size_t count = part.nbytes() / static_cast<std::size_t>(rows);
      std::memcpy(to, part.data.get() + static_cast<std::size_t>(row) * count, count);
      to += count;
    }
  }
  return result.tensor;
}

// --- integers

bool is_whole(DType dtype) {
  return dtype == DType::kBool ||
         (is_integer(dtype) && dtype != DType::kU64 && byte_width(dtype) > 0);
}

std::optional<Tensor> cast(const Call& call) {
  if (!is_whole(call.in[0].dtype) || !is_whole(call.dtype)) return std::nullopt;
  Ints values;
  for (std::int64_t i = 0; i < call.in[0].size(); ++i) values.push_back(call.in[0].int_at(i));
  return integers(call.dtype, call.shape, values);
}

template <bool (*kOverflows)(std::int64_t, std::int64_t, std::int64_t&)>
std::optional<Tensor> arithmetic(const Call& call) {
  if (call.dtype != DType::kI64 && call.dtype != DType::kI32) return std::nullopt;
  const Tensor a = broadcast(call.in[0], call.shape), b = broadcast(call.in[1], call.shape);
  Ints values(static_cast<std::size_t>(a.size()));
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (kOverflows(a.int_at(i), b.int_at(i), values[i])) {
      return std::nullopt;
    }
  }
  return integers(call.dtype, call.shape, values);
}
bool add(std::int64_t a, std::int64_t b, std::int64_t& sum) {
  return __builtin_add_overflow(a, b, &sum);
}
bool subtract(std::int64_t a, std::int64_t b, std::int64_t& difference) {
  return __builtin_sub_overflow(a, b, &difference);
}
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return __builtin_mul_overflow(a, b, &product);
}

// --- the table

constexpr FoldRow kRows[] = {
    // sorted by op
    {"Add", arithmetic<add>}, {"Cast", cast},         {"Concat", concat},
    {"Expand", expand},       {"Flatten", regroup},   {"Mul", arithmetic<multiply>},
    {"Reshape", regroup},     {"Squeeze", regroup},   {"Sub", arithmetic<subtract>},
    {"Transpose", transpose}, {"Unsqueeze", regroup},
};
static_assert(std::ranges::is_sorted(kRows, {}, &FoldRow::op));

class Folder {
 public:
  Folder(onnx::Model& model, std::span<const FoldRow> more, std::int64_t most)
      : model_(model), more_(more), most_(most) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      // Names of outputs belong to nodes; an initializer that is an input is a mere default.
      for (ValueId id : graph.inputs) is_border_[id] = true;
      for (ValueId id : graph.outputs) is_border_[id] = true;
    });
  }

  std::size_t run(Graph& graph) {
    for (const onnx::Initializer& constant : graph.initializers) remember(constant);
    std::size_t folded = std::erase_if(graph.nodes, [&](const Node& node) {
      auto result = value_of(node);
      if (!result) return false;
      Shape shape = result->shape;
      graph.initializers.push_back({node.out[0], whole(std::move(*result)), std::move(shape)});
      remember(graph.initializers.back());
      return true;
    });
    for (const Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { folded += run(inner); });
    }
    return folded;
  }

 private:
  void remember(const onnx::Initializer& constant) {
    if (is_border_[constant.value] || constant.view.size() > most_) return;
    Tensor tensor = materialise(constant.view);
    tensor.shape = constant.shape;
    unsorted_known_.emplace(constant.value, std::move(tensor));
  }

  std::optional<Tensor> value_of(const Node& node) const {
    if (!node.domain.empty() || node.out.size() != 1 || is_border_[node.out[0]]) return {};
    const FoldRow* row = find(kRows, node.op);
    const FoldRow* other = find(more_, node.op);
    if (row == nullptr && other == nullptr) return {};
    auto call = call_of(node);
    if (!call) return {};
    std::optional<Tensor> result = row != nullptr ? row->fold(*call) : std::nullopt;
    if (!result && other != nullptr) result = other->fold(*call);
    return result;
  }

  static const FoldRow* find(std::span<const FoldRow> rows, std::string_view op) {
    const auto row = std::ranges::lower_bound(rows, op, {}, &FoldRow::op);
    return row == rows.end() || row->op != op ? nullptr : &*row;
  }

  std::optional<Call> call_of(const Node& node) const {
    const auto& type = model_.values[node.out[0]].type;
    if (!type || !type->shape) return std::nullopt;
    Call call{node, {}, type->dtype, {}};
    for (ValueId id : node.in) {
      if (id == onnx::kAbsent) return std::nullopt;
      const auto found = unsorted_known_.find(id);
      if (found == unsorted_known_.end()) return std::nullopt;
      call.in.push_back(found->second);
    }
    for (const Dim& dim : *type->shape) {
      if (!dim.is_static()) return std::nullopt;
      call.shape.push_back(dim.value());
    }
    return is_small(call.shape) ? std::optional(std::move(call)) : std::nullopt;
  }

  // A file of others may ask for sizes that no tensor has.
  bool is_small(const Shape& shape) const {
    std::int64_t elements = 1;
    for (std::int64_t size : shape) {
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return false;
    }
    return elements <= most_;
  }

  onnx::Model& model_;
  std::span<const FoldRow> more_;
  std::int64_t most_;
  std::vector<bool> is_border_ = std::vector<bool>(model_.values.size());
  std::unordered_map<ValueId, Tensor> unsorted_known_;
};

}  // namespace

Ints row_major_strides(const Shape& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Tensor broadcast(const Tensor& x, const Shape& shape) {
  StridedView view{x, 0, shape, Ints(shape.size(), 0)};
  const Ints strides = row_major_strides(x.shape);
  const std::size_t missing = shape.size() - x.shape.size();
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] != 1) view.strides[missing + i] = strides[i];
  }
  Tensor result = materialise(view);
  result.shape = shape;
  return result;
}

std::optional<Tensor> integers(DType dtype, const Shape& shape, const Ints& values) {
  MutableTensor result = allocate(dtype, shape);
  const std::size_t width = byte_width(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor element = int_scalar(dtype, values[i]);
    if (element.int_at(0) != values[i]) return std::nullopt;  // it would wrap around
    std::memcpy(result.bytes + i * width, element.data.get(), width);
  }
  return result.tensor;
}

std::size_t fold_constants(onnx::Model& model) {
  return Folder(model, {}, kMostElements).run(model.graph);
}

std::size_t fold_numbers(onnx::Model& model) {
  constexpr std::int64_t kMostNumbers = 1 << 16;
  return Folder(model, number_rows(), kMostNumbers).run(model.graph);
}

}  // namespace jaxport::pass
