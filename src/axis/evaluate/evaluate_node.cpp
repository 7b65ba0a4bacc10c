// SPDX-License-Identifier: Apache-2.0
// The value of one node: operands are brought into aligned positional form, then the evaluator of
// front IR computes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "axis/evaluate/evaluate.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "eval/eval.h"
#include "front/params.h"
#include "jaxport/error.h"

namespace jaxport::axis {
namespace {

std::size_t at(Label label) { return static_cast<std::size_t>(label); }

}  // namespace

Shape bound_sizes(const Dims& sizes, const DimBindings& bindings) {
  Shape shape;
  shape.reserve(sizes.size());
  for (const Dim& size : sizes) shape.push_back(evaluate(size, bindings));
  return shape;
}

Strided by_label(const Tensor& tensor, const Pattern& axes, const Shape& sizes) {
  Strided strided{tensor, std::vector<std::int64_t>(sizes.size(), 0),
                  std::vector<bool>(sizes.size(), false)};
  std::int64_t stride = 1;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    std::int64_t inside = 1;
    for (std::size_t i = axes[axis].size(); i-- > 0;) {
      const std::size_t label = at(axes[axis][i]);
      strided.strides[label] += stride * inside;
      strided.present[label] = true;
      inside *= sizes[label];
    }
    if (inside != tensor.shape[axis]) {
      throw Error("E041",
                  fmt::format("an axis of size {} is read as size {}", tensor.shape[axis], inside));
    }
    stride *= tensor.shape[axis];
  }
  return strided;
}

// Reads the operand over `order`. Labels that it lacks have size 1, or their full size with
// `repeated`.
Tensor read(const Strided& operand, const Labels& order, const Shape& sizes, bool repeated) {
  StridedView view{.base = operand.base, .offset = 0, .sizes = {}, .strides = {}};
  for (Label label : order) {
    view.sizes.push_back(operand.present[at(label)] || repeated ? sizes[at(label)] : 1);
    view.strides.push_back(operand.strides[at(label)]);
  }
  return materialise(view);
}

Tensor with_shape(Tensor tensor, Shape shape) {
  if (element_count(shape) != tensor.size()) {
    throw Error("E041", "a value has another number of elements than its type");
  }
  tensor.shape = std::move(shape);
  return tensor;
}

namespace {

std::int64_t count(const Labels& labels, const Shape& sizes) {
  std::int64_t product = 1;
  for (Label label : labels) product *= sizes[at(label)];
  return product;
}

Tensor apply_one(std::string_view primitive, front::Attrs attrs, std::span<const Tensor> operands,
                 DType dtype, const Shape& shape) {
  const front::Eqn eqn{std::string(primitive), {}, {}, std::move(attrs), front::kNoLocation};
  const front::Type type{dtype, Dims(shape.begin(), shape.end())};
  return eval::apply(eqn, operands, std::span(&type, 1))[0];
}

// One node with the values of its operands.
struct Evaluation {
  const Node& node;
  Shape sizes;  // by label
  std::vector<Strided> operands;
  Labels out;       // the labels of the result in order
  Shape out_shape;  // one dim for each result axis

  Tensor read_out(std::size_t i, bool repeated) const {
    return read(operands[i], out, sizes, repeated);
  }
};

Evaluation prepare(const Node& node, std::span<const Tensor> operands,
                   const DimBindings& bindings) {
  Evaluation e{node, bound_sizes(node.sizes, bindings), {}, flatten(node.out), {}};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    e.operands.push_back(by_label(operands[i], node.edges[i].axes, e.sizes));
  }
  for (const Labels& axis : node.out) e.out_shape.push_back(count(axis, e.sizes));
  return e;
}

Tensor pointwise(const Evaluation& e) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < e.operands.size(); ++i) operands.push_back(e.read_out(i, false));
  front::Attrs attrs = e.node.attrs;
  if (e.node.name == "convert_element_type" || e.node.name == "bitcast_convert_type") {
    front::set(attrs, "new_dtype", e.node.dtype);
  }
  return apply_one(e.node.name, std::move(attrs), operands, e.node.dtype, e.out_shape);
}

Tensor reduce(const Evaluation& e) {
  Labels order = e.out;
  add_new(order, flatten(e.node.edges[0].axes));
  Ints axes(order.size() - e.out.size());
  std::iota(axes.begin(), axes.end(), std::ssize(e.out));
  const Tensor operand = read(e.operands[0], order, e.sizes, false);
  return apply_one(e.node.name, {{"axes", axes}}, std::span(&operand, 1), e.node.dtype,
                   e.out_shape);
}

Tensor transposed(const Tensor& tensor, const Labels& from, const Evaluation& e) {
  const Tensor flat = with_shape(tensor, [&] {
    Shape shape;
    for (Label label : from) shape.push_back(e.sizes[at(label)]);
    return shape;
  }());
  const Strided strided = by_label(flat, axis_each(from), e.sizes);
  return with_shape(read(strided, e.out, e.sizes, false), e.out_shape);
}

// As one batch of matrix products: [batch, rows, inner] x [batch, inner, columns].
Tensor contract(const Evaluation& e) {
  const Labels lhs = flatten(e.node.edges[0].axes), rhs = flatten(e.node.edges[1].axes);
  const Labels both = within(lhs, rhs);
  const Labels batch = within(both, e.out), inner = without(both, e.out);
  const Labels rows = without(lhs, both), columns = without(rhs, both);
  auto matrix = [&](std::size_t i, const Labels& second, const Labels& third) {
    Labels order = batch;
    order.insert(order.end(), second.begin(), second.end());
    order.insert(order.end(), third.begin(), third.end());
    return with_shape(read(e.operands[i], order, e.sizes, false),
                      {count(batch, e.sizes), count(second, e.sizes), count(third, e.sizes)});
  };
  const std::vector<Tensor> operands{matrix(0, rows, inner), matrix(1, inner, columns)};
  const front::DotParams dims{{2}, {1}, {0}, {0}};
  const Tensor product =
      apply_one("dot_general", dims.attrs(), operands, e.node.dtype,
                {count(batch, e.sizes), count(rows, e.sizes), count(columns, e.sizes)});
  Labels order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  return transposed(product, order, e);
}

// One index or range of a label: the same strides from another start.
Tensor window(const Evaluation& e, Label from, std::optional<Label> to, std::int64_t start,
              std::int64_t stride) {
  const Strided& operand = e.operands[0];
  StridedView view{.base = operand.base, .offset = 0, .sizes = {}, .strides = {}};
  const std::int64_t step = operand.strides[at(from)];
  const std::int64_t length = to ? e.sizes[at(*to)] : 1;
  const bool inside = start >= 0 && stride > 0 &&
                      (length == 0 || start + (length - 1) * stride < e.sizes[at(from)]);
  if (!inside) throw Error("E041", "a slice leaves its axis");
  view.offset = length == 0 ? 0 : start * step;
  for (Label label : e.out) {
    const bool sliced = to && label == *to;
    view.sizes.push_back(e.sizes[at(label)]);
    view.strides.push_back(sliced ? step * stride : operand.strides[at(label)]);
  }
  return with_shape(materialise(view), e.out_shape);
}

Tensor pick(const Evaluation& e) {
  const Pick of = Pick::of(e.node);
  return window(e, of.along[0], std::nullopt, of.index, 1);
}

Tensor slice(const Evaluation& e, const DimBindings& bindings) {
  const Slice of = Slice::of(e.node);
  return window(e, of.from[0], of.target(), evaluate(of.start, bindings), of.stride);
}

// Joins operands along `along`: with that label first, they follow each other in memory.
Tensor joined(const Evaluation& e, Label along, const std::vector<std::optional<Label>>& pieces) {
  const Labels rest = without(e.out, {along});
  Labels order{along};
  order.insert(order.end(), rest.begin(), rest.end());
  MutableTensor all = allocate(e.node.dtype, {count(order, e.sizes)});
  std::size_t offset = 0;
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    Labels piece_order = rest;
    if (pieces[i]) piece_order.insert(piece_order.begin(), *pieces[i]);
    const Tensor part = read(e.operands[i], piece_order, e.sizes, true);
    if (offset + part.nbytes() > all.tensor.nbytes()) throw Error("E041", "pieces do not fit");
    if (part.nbytes() > 0) std::memcpy(all.bytes + offset, part.data.get(), part.nbytes());
    offset += part.nbytes();
  }
  if (offset != all.tensor.nbytes()) throw Error("E041", "pieces do not fit");
  return transposed(all.tensor, order, e);
}

Tensor concat(const Evaluation& e) {
  const Concat of = Concat::of(e.node);
  return joined(e, of.to[0], of.piece_labels());
}

Tensor stack(const Evaluation& e) {
  return joined(e, Stack::of(e.node).along[0],
                std::vector<std::optional<Label>>(e.operands.size()));
}

Tensor iota(const Evaluation& e) {
  return apply_one("iota", {{"dimension", 0}}, {}, e.node.dtype, e.out_shape);
}

}  // namespace

std::vector<Tensor> evaluate_prim(const Node& node, std::span<const Tensor> operands,
                                  const DimBindings& bindings, const eval::RunRegion& run_region) {
  std::vector<Tensor> shaped;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    shaped.push_back(with_shape(operands[i], bound_sizes(node.prim->in[i].shape, bindings)));
  }
  return eval::apply(node.prim->eqn, shaped, node.prim->out, bindings, run_region);
}

Tensor evaluate_node(const Node& node, std::span<const Tensor> operands,
                     const DimBindings& bindings) {
  const Evaluation e = prepare(node, operands, bindings);
  switch (node.kind) {
    case Kind::kConstant:
      return node.data;
    case Kind::kIota:
      return iota(e);
    case Kind::kPointwise:
      return pointwise(e);
    case Kind::kReduce:
      return reduce(e);
    case Kind::kContract:
      return contract(e);
    case Kind::kPick:
      return pick(e);
    case Kind::kStack:
      return stack(e);
    case Kind::kSlice:
      return slice(e, bindings);
    case Kind::kConcat:
      return concat(e);
    case Kind::kRelayout:
      return with_shape(e.read_out(0, true), e.out_shape);
    case Kind::kPrim:
      return with_shape(evaluate_prim(node, operands, bindings)[node.result], e.out_shape);
    case Kind::kInput:
    case Kind::kMacro:
      break;
  }
  throw Error("BUG", fmt::format("node '{}' has no value of its own", node.name));
}

}  // namespace jaxport::axis
