// SPDX-License-Identifier: Apache-2.0
// The invariants of graph.h, checked after the build and after every pass in tests.
#include <fmt/format.h>

#include <algorithm>

#include "axis/graph/graph.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "jaxport/error.h"

namespace jaxport::axis {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), graph_(*program.graph) {}

  void run() {
    for (const Node* node : topological(program_)) check(*node);
    require(program_.outputs.size() == program_.output_types.size(), "outputs and types differ");
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      where_ = fmt::format("output {}", i);
      check(program_.outputs[i], program_.output_types[i]);
    }
  }

 private:
  void require(bool fact, std::string_view what) const {
    if (!fact) throw Error("BUG", fmt::format("axis graph, {}: {}", where_, what));
  }

  static bool is_distinct(Labels labels) {
    std::ranges::sort(labels);
    return std::ranges::adjacent_find(labels) == labels.end();
  }

  static bool may_be_equal(const Dim& a, const Dim& b) {
    return a == b || equal(a, b) != Truth::kNo;
  }

  void check_labels(const Node& node, const Labels& labels) const {
    for (Label label : labels) {
      require(label >= 0 && static_cast<std::size_t>(label) < node.sizes.size(), "unknown label");
    }
  }

  Dim size_of(const Node& node, const Labels& labels) const {
    Dim size = 1;
    for (Label label : labels) size = size * node.sizes[label];
    return size;
  }

  void check(const Node& node) {
    where_ = fmt::format("node {} '{}'", node.id, node.name);
    require(std::ranges::none_of(node.sizes, &Dim::is_one), "a label of size 1");
    Labels out = flatten(node.out);
    check_labels(node, out);
    require(is_distinct(out), "a label is twice in the result");
    for (const Labels& axis : node.out) {
      const bool fits = node.kind == Kind::kRelayout ? !axis.empty() : axis.size() == 1;
      require(fits, "an axis of the result is not one label");
    }
    require(std::ranges::is_sorted(node.roles), "roles are not sorted");
    for (const auto& [name, labels] : node.roles) check_labels(node, labels);
    for (const Edge& edge : node.edges) check(node, edge);
    check_kind(node, out);
  }

  void check(const Node& node, const Edge& edge) const {
    require(edge.node->id < node.id, "an operand is younger than its user");
    require(edge.axes.size() == edge.node->out.size(), "an edge lacks axes of its operand");
    const Labels flat = flatten(edge.axes);
    check_labels(node, flat);
    require(is_distinct(flat), "a label is twice on an edge");
    for (std::size_t axis = 0; axis < edge.axes.size(); ++axis) {
      require(may_be_equal(size_of(node, edge.axes[axis]), edge.node->axis_size(axis)),
              "an edge and its operand differ in size");
    }
  }

  // Which labels the operands may have beside those of the result.
  void check_kind(const Node& node, const Labels& out) const {
    Labels inner;
    for (const Edge& edge : node.edges) add_new(inner, without(flatten(edge.axes), out));
    switch (node.kind) {
      case Kind::kPointwise:
      case Kind::kStack:
      case Kind::kRelayout:
        return require(inner.empty(), "an operand varies along a label that the result lacks");
      case Kind::kContract:
        for (const Edge& edge : node.edges) {
          require(without(inner, flatten(edge.axes)).empty(), "a summed label is on one side only");
        }
        return require(!inner.empty(), "nothing is summed");
      case Kind::kPick:
        return require(inner == Pick::of(node).along, "the picked label is not its role");
      case Kind::kSlice:
        return require(inner == Slice::of(node).from, "the sliced label is not its role");
      case Kind::kPrim:
        return check_prim(node);
      default:
        return;
    }
  }

  void check_prim(const Node& node) const {
    require(node.prim && node.edges.size() == node.prim->in.size(), "operands and types differ");
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      Dims sizes;
      std::ranges::copy_if(node.prim->in[i].shape, std::back_inserter(sizes),
                           [](const Dim& size) { return !size.is_one(); });
      const Pattern& axes = node.edges[i].axes;
      require(axes.size() == sizes.size(), "an operand has not the axes of its type");
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        require(axes[axis].size() == 1 && may_be_equal(size_of(node, axes[axis]), sizes[axis]),
                "an operand has not the axes of its type");
      }
    }
  }

  void check(const View& view, const front::Type& type) const {
    const Labels dims = flatten(view.dims);
    require(is_distinct(dims), "a label is in two dims");
    require(without(view.use.flat(), dims).empty(), "the value varies along no dim");
    require(view.use.labels.size() == view.use.node->out.size(), "axes are missing");
    require(view.dims.size() == type.shape.size(), "the rank does not fit");
    require(view.use.node->dtype == type.dtype, "the dtype does not fit");
    for (std::size_t axis = 0; axis < view.use.labels.size(); ++axis) {
      require(may_be_equal(graph_.size_of(view.use.labels[axis]), view.use.node->axis_size(axis)),
              "an axis does not fit its node");
    }
    for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
      require(may_be_equal(graph_.size_of(view.dims[dim]), type.shape[dim]),
              "a dim does not fit the type");
    }
  }

  const Program& program_;
  const Graph& graph_;
  std::string where_ = "program";
};

}  // namespace

void verify(const Program& program) {
  Verifier(program).run();
  for (const Program* region : regions(program)) verify(*region);
}

}  // namespace jaxport::axis
