// SPDX-License-Identifier: Apache-2.0
// lstm, gru, rnn: a scan whose body is the cell of an ONNX op becomes that op.
//
// What a step computes from x alone is computed for all steps outside; there it must be a product
// with weights plus a bias. Sums are associated differently, and 1 - sigmoid(a) may become
// sigmoid(-a).
#include <algorithm>
#include <cstring>
#include <utility>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "front/params.h"
#include "raise/algebra/hoist.h"
#include "raise/algebra/polynomial.h"
#include "raise/algebra/views.h"
#include "raise/engine/rules.h"
#include "raise/rules/cell.h"
#include "raise/rules/recurrent.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;
using axis::View;

bool is_all_zero(const Node* node) {
  while (node->kind == Kind::kRelayout) node = node->edges[0].node;
  if (node->kind != Kind::kConstant) return false;
  const std::byte* bytes = node->data.data.get();
  return std::all_of(bytes, bytes + node->data.nbytes(),
                     [](std::byte b) { return b == std::byte{}; });
}

// The operands of the op, outside of the loop.
class Assembly {
 public:
  Assembly(Graph& graph, const Node& scan, const Cell& cell)
      : graph_(graph),
        scan_(scan),
        cell_(cell),
        step_(graph.label(front::ScanParams::read(scan.prim->eqn).length)),
        hoist_(graph, scan, step_),
        hidden_(hoist_.outside(cell.hidden)),
        before_(hoist_.outside(cell.before)) {
    for (Label label : cell.axes) {
      state_.push_back(hoist_.outside(label));
      if (label != cell.hidden) batch_.push_back(state_.back());
    }
  }

  // Empty, or why the loop is not the op.
  std::string collect() {
    for (const Gate& gate : cell_.gates) {
      if (std::string problem = collect(gate); !problem.empty()) return problem;
    }
    const bool is_static =
        graph_.size_of(features_).is_static() && graph_.size(hidden_).is_static();
    return is_static ? "" : "the number of inputs or units is symbolic";
  }

  std::vector<Use> results() {
    const RecurrentSizes sizes{graph_.size(step_), graph_.size_of(batch_),
                               graph_.size_of(features_), graph_.size(hidden_)};
    const Label gate = graph_.label(std::ssize(weights_)), side = graph_.label(2);
    Labels rows{hidden_};
    if (weights_.size() > 1) rows.insert(rows.begin(), gate);
    Labels all_rows = rows;
    all_rows.insert(all_rows.begin(), side);
    const Use bias =
        graph_.stack({graph_.stack(biases_, gate), graph_.stack(state_biases_, gate)}, side);
    std::vector<View> views{{graph_.stack(weights_, gate), {{}, rows, features_}},
                            {graph_.stack(recurrent_, gate), {{}, rows, {before_}}},
                            {bias, {{}, all_rows}}};
    bool starts_at_zero = true;
    for (std::size_t carry : cell_.state) {
      const std::size_t i = carry + front::ScanParams::read(scan_.prim->eqn).consts;
      views.push_back({hoist_.operand(i, state_), {{}, batch_, {hidden_}}});
      starts_at_zero = starts_at_zero && is_all_zero(scan_.edges[i].node);
    }
    views.push_back({x_, {{step_}, batch_, features_}});
    std::vector<Use> operands;
    operands.reserve(views.size());
    for (const View& view : views) operands.push_back(axis::positional(graph_, view));
    return graph_.prim(recurrent_prim(graph_, scan_, cell_, sizes, starts_at_zero),
                       std::move(operands));
  }

 private:
  bool varies(const Use& use) const {
    const Labels labels = use.flat();
    return axis::contains(labels, step_) || axis::intersects(labels, batch_);
  }
  DType dtype() const { return scan_.dtype; }

  std::string collect(const Gate& gate) {
    const Use input = hoist_(gate.input), recurrent = hoist_(gate.recurrent);
    const Use bias = gate.bias ? hoist_(gate.bias) : graph_.scalar(0, dtype());
    if (!input || !recurrent || !bias) return "a step computes more than a cell from x";
    if (varies(recurrent) || varies(bias)) return "the weights change from step to step";
    const auto sum = polynomial(graph_, input, [this](const Use& use) { return !varies(use); });
    if (!sum) return "a gate has too many terms";
    Use weights, from_x = graph_.scalar(0, dtype());
    for (const Monomial& term : *sum) {
      if (std::ranges::none_of(term.factors, [&](const Use& use) { return varies(use); })) {
        from_x = from_x + product(graph_, term, dtype());
        continue;
      }
      const Use found = term.factors.size() == 1 ? weights_of(term.factors[0]) : Use{};
      if (!found || weights) return "the input of a gate is no product of x with weights";
      weights = product(graph_, {term.coefficient, {found}}, dtype());
    }
    if (!weights) return "a gate does not depend on x";
    weights_.push_back(weights);
    recurrent_.push_back(recurrent);
    biases_.push_back(from_x);
    state_biases_.push_back(bias);
    return "";
  }

  // The weights, over hidden and features, of a product with what every gate reads.
  Use weights_of(const Use& use) {
    if (use.node->kind != Kind::kContract) return {};
    std::vector<Use> operands = graph_.children(use);
    if (!varies(operands[0])) std::swap(operands[0], operands[1]);
    if (varies(operands[1])) return {};
    for (Use& operand : operands) {
      operand = widened(operand, dtype());
      if (!operand) return {};
    }
    axis::Binding names;
    if (!x_) {
      x_ = operands[0];
      features_ = axis::without(operands[1].flat(), use.flat());
    } else if (!graph_.same(x_, operands[0], names)) {
      return {};
    }
    Use weights = Graph::substitute(operands[1], names);
    Labels expected = features_;
    expected.push_back(hidden_);
    return same_set(weights.flat(), expected) ? weights : Use{};
  }

  Graph& graph_;
  const Node& scan_;
  const Cell& cell_;
  Label step_;
  Hoist hoist_;
  Label hidden_, before_;
  Labels state_, batch_;  // the axes of the state outside; those but the units
  Use x_;
  Labels features_;                                               // of x
  std::vector<Use> weights_, recurrent_, biases_, state_biases_;  // by gate
};

// Dims of a step's result by the labels of h'. nullopt when it is something else than h'.
std::optional<axis::Substitution> as_next(const Cell& cell, const View& y) {
  if (y.use.node != cell.next.node) return std::nullopt;
  axis::Substitution names;
  for (std::size_t axis = 0; axis < y.use.labels.size(); ++axis) {
    if (y.use.labels[axis].size() != 1 || cell.next.labels[axis].size() != 1) return std::nullopt;
    names.set(y.use.labels[axis][0], cell.next.labels[axis]);
  }
  return names;
}

class Results {
 public:
  Results(const Node& scan, const Cell& cell) : scan_(scan), cell_(cell) {
    carries_ = front::ScanParams::read(scan.prim->eqn).carries;
  }

  // Result i of the scan out of those of the op, over these labels: one for each non-unit dim.
  // Empty when the op does not give it.
  Use find(std::size_t i, const std::vector<Use>& op, const axis::Pattern& labels) const {
    Labels dims = cell_.axes;  // which axis of the state each label is
    std::size_t which = op.size() - 1;
    if (i < carries_) {
      const auto state = std::ranges::find(cell_.state, i);
      if (state == cell_.state.end()) return {};
      which = static_cast<std::size_t>(state - cell_.state.begin());
    } else {
      const View& y = scan_.prim->regions[0]->outputs[i];
      const auto names = as_next(cell_, y);
      if (!names) return {};
      dims = axis::flatten((*names)(y.dims));
      if (!same_set(dims, cell_.axes)) return {};
    }
    axis::Pattern seen;
    const std::size_t first = i < carries_ ? 0 : 1;
    if (first == 1) seen.push_back(labels[0]);
    const auto label_of = [&](Label axis) {
      return labels[first + static_cast<std::size_t>(std::ranges::find(dims, axis) - dims.begin())]
                   [0];
    };
    Labels batch;
    for (Label axis : cell_.axes) {
      if (axis != cell_.hidden) batch.push_back(label_of(axis));
    }
    if (!batch.empty()) seen.push_back(std::move(batch));
    seen.push_back({label_of(cell_.hidden)});
    return {op[which].node, std::move(seen)};
  }

 private:
  const Node& scan_;
  const Cell& cell_;
  std::size_t carries_;
};

Use match_recurrent(const Matcher& m, const Use& root) {
  const Node& scan = *root.node;
  if (scan.kind != Kind::kPrim) return {};
  const CellReading reading = read_cell(scan);
  if (reading.rule.empty() || !m.allows(reading.rule)) return {};
  if (!reading.cell) return m.miss(reading.rule, root, reading.problem);
  const Cell& cell = *reading.cell;
  if (cell.next.node->dtype != DType::kF32) {
    return m.miss(reading.rule, root, "the kernels compute in f32 only");
  }
  if (cell.op.name == kRnn.name && cell.axes.size() > 1 && m.preferences.has_slow_rnn) {
    return m.miss(reading.rule, root, "a scan over several sequences is faster");
  }
  Assembly assembly(m.graph, scan, cell);
  if (std::string problem = assembly.collect(); !problem.empty()) {
    return m.miss(reading.rule, root, std::move(problem));
  }
  const std::vector<Use> op = assembly.results();
  const Results results(scan, cell);
  const std::vector<Use> all = m.graph.prim(scan.prim, m.graph.children(root));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (m.uses[all[i].node] > 0 && !results.find(i, op, all[i].labels)) {
      return m.miss(reading.rule, root, "the loop has results that the op does not have");
    }
  }
  return results.find(scan.result, op, root.labels);
}

}  // namespace

Rules recurrent_rules() {
  static const Rule kRules[] = {
      {kLstm.name, {"scan"}, match_recurrent},
      {kGru.name, {"scan"}, match_recurrent},
      {kRnn.name, {"scan"}, match_recurrent},
  };
  return kRules;
}

}  // namespace jaxport::raise
