// SPDX-License-Identifier: Apache-2.0
// A comparison of each index with 0, 1, …, n - 1, as numbers, is a row of a constant table: 0.5 to
// 0.9 of the time. OneHot would count indices below 0 from the end; here they take a row of zeros.
#include <algorithm>
#include <cstring>

#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

constexpr std::int64_t kMostClasses = 63;  // a table of 16 kB in f32

// Rows of a unit matrix, and a row of zeros: the element [i, j] is the one behind i ones of a row.
StridedView table(DType dtype, std::int64_t classes) {
  MutableTensor row = allocate(dtype, {2 * classes});
  const std::size_t width = byte_width(dtype);
  std::memset(row.bytes, 0, row.tensor.nbytes());
  std::memcpy(row.bytes + static_cast<std::size_t>(classes) * width, scalar(dtype, 1).data.get(),
              width);
  return {row.tensor, classes, {classes + 1, classes}, {-1, 1}};
}

class OneHots {
 public:
  explicit OneHots(onnx::Model& model)
      : model_(model),
        uses_(use_counts(model)),
        made_by_(model.values.size(), nullptr),
        constant_(model.values.size(), nullptr) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      for (const Initializer& known : graph.initializers) constant_[known.value] = &known;
      for (ValueId id : graph.inputs) constant_[id] = nullptr;  // whoever runs it may feed another
    });
  }

  std::size_t run(Graph& graph) {
    std::size_t found = 0;
    for (const Node& node : graph.nodes) {
      // In a function each constant that is no weight is a node.
      if (onnx::open_body(node)) continue;
      onnx::for_each_subgraph(node, [&](Graph& inner) { found += run(inner); });
    }
    std::vector<Table> tables;
    for (Node& node : graph.nodes) {
      if (!node.domain.empty()) continue;
      made_by_[node.out[0]] = &node;
      if (node.op == "Cast" && takes_comparison(node, tables)) ++found;
    }
    // Initializers are pointed at until all nodes are seen.
    for (Table& one : tables) {
      add(graph, one.lowest, whole(scalar(DType::kI32, -1)), {});
      add(graph, one.highest, whole(scalar(DType::kI32, static_cast<double>(one.classes))), {});
      add(graph, one.rows, table(one.dtype, one.classes), {one.classes + 1, one.classes});
    }
    return found;
  }

 private:
  struct Table {
    std::int64_t classes;
    DType dtype;
    ValueId lowest, highest, rows;
  };

  bool takes_comparison(Node& cast, std::vector<Table>& tables) {
    Node* comparison = cast.in[0] < made_by_.size() ? made_by_[cast.in[0]] : nullptr;
    if (comparison == nullptr || comparison->op != "Equal" || uses_[cast.in[0]] != 1) return false;
    for (std::size_t side : {0u, 1u}) {
      const std::int64_t classes = counted(comparison->in[1 - side]);
      const ValueId index = without_last_dim(comparison->in[side]);
      if (classes == 0 || index == onnx::kAbsent) continue;
      const Table made{classes, type(cast.out[0])->dtype, value(), value(), value()};
      comparison->op = "Clip";
      comparison->in = {index, made.lowest, made.highest};
      model_.values[comparison->out[0]].type = *type(index);
      cast.op = "Gather";
      cast.in = {made.rows, comparison->out[0]};
      cast.attrs = {};
      tables.push_back(made);
      return true;
    }
    return false;
  }

  // How many numbers 0, 1, … a constant vector of i32 holds; 0 when it is none, or a long one.
  std::int64_t counted(ValueId id) const {
    const Initializer* known = constant_[id];
    if (known == nullptr || known->shape.size() != 1 || known->view.base.dtype != DType::kI32)
      return 0;
    const std::int64_t size = known->shape[0];
    if (size > kMostClasses) return 0;
    const Tensor numbers = materialise(known->view);
    for (std::int64_t i = 0; i < size; ++i) {
      if (numbers.int_at(i) != i) return 0;
    }
    return size;
  }

  // The operand of a Reshape that gives it a last dim of 1.
  ValueId without_last_dim(ValueId id) const {
    const Node* reshape = made_by_[id];
    if (reshape == nullptr || reshape->op != "Reshape") return onnx::kAbsent;
    const TensorType *before = type(reshape->in[0]), *after = type(id);
    if (before == nullptr || after == nullptr) return onnx::kAbsent;
    Dims wanted = *before->shape;
    wanted.push_back(Dim(1));
    return wanted == *after->shape ? reshape->in[0] : onnx::kAbsent;
  }

  const TensorType* type(ValueId id) const {
    const auto& known = model_.values[id].type;
    return known && known->shape ? &*known : nullptr;
  }

  ValueId value() {
    model_.values.push_back({});
    made_by_.push_back(nullptr);
    constant_.push_back(nullptr);
    return static_cast<ValueId>(model_.values.size() - 1);
  }

  void add(Graph& graph, ValueId id, StridedView view, Shape shape) {
    model_.values[id].type = TensorType{view.base.dtype, Dims(shape.begin(), shape.end())};
    graph.initializers.push_back({id, std::move(view), std::move(shape)});
  }

  onnx::Model& model_;
  const std::vector<std::uint32_t> uses_;     // by value
  std::vector<Node*> made_by_;                // by value
  std::vector<const Initializer*> constant_;  // by value
};

}  // namespace

std::size_t make_one_hots(onnx::Model& model) { return OneHots(model).run(model.graph); }

}  // namespace jaxport::pass
