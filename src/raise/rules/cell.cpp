// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/cell.h"

#include <algorithm>
#include <unordered_map>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "front/params.h"
#include "raise/algebra/part.h"
#include "raise/algebra/polynomial.h"
#include "raise/algebra/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;

// A carry of the loop at the start and at the end of a step, over the same labels.
struct Carry {
  Use state, next;
  Labels axes;
};

class Body {
 public:
  explicit Body(const Node& scan)
      : graph(*scan.prim->regions[0]->graph),
        program_(*scan.prim->regions[0]),
        consts_(front::ScanParams::read(scan.prim->eqn).consts),
        carries_(front::ScanParams::read(scan.prim->eqn).carries) {
    // Operands first: no recursion is deep, however long the body is.
    for (const Node* node : axis::topological(program_)) is_carried(node);
  }

  std::size_t carries() const { return carries_; }

  // nullopt when the step does not keep one label for each dim.
  std::optional<Carry> carry(std::size_t i) {
    const axis::View& view = program_.outputs[i];
    Carry result{graph.input(static_cast<std::int64_t>(consts_ + i), program_.output_types[i], ""),
                 view.use,
                 {}};
    for (const Labels& dim : view.dims) {
      if (dim.size() > 1) return std::nullopt;
      if (!dim.empty()) result.axes.push_back(dim[0]);
    }
    if (result.axes.size() != result.state.labels.size()) return std::nullopt;
    result.state.labels = axis::axis_each(result.axes);
    return result;
  }

  bool same_type(std::size_t i, std::size_t j) const {
    return program_.output_types[i] == program_.output_types[j];
  }

  // Whether the value depends on what an earlier step computed.
  bool is_carried(const Use& use) { return is_carried(use.node); }

  std::optional<Polynomial> polynomial_of(const Use& use) {
    return polynomial(graph, use, [this](const Use& value) { return !is_carried(value); });
  }

  Graph& graph;

 private:
  bool is_carried(const Node* node) {
    if (auto found = unsorted_carried_.find(node); found != unsorted_carried_.end()) {
      return found->second;
    }
    bool result = false;
    if (node->kind == Kind::kInput) {
      const auto index = static_cast<std::size_t>(node->get<std::int64_t>("index"));
      result = index >= consts_ && index < consts_ + carries_;
    }
    for (const axis::Edge& edge : node->edges) result = result || is_carried(edge.node);
    unsorted_carried_.emplace(node, result);
    return result;
  }

  axis::Program& program_;
  std::size_t consts_, carries_;
  std::unordered_map<const Node*, bool> unsorted_carried_;
};

bool is_logistic(const Use& use) { return is_pointwise(use, "logistic"); }
bool is_tanh(const Use& use) { return is_pointwise(use, "tanh"); }

// Reads the gates of a cell whose output is the carry `h`.
class Gates {
 public:
  Gates(Body& body, const Carry& h) : body_(body), graph_(body.graph), h_(h) {}

  // input + h . recurrent, times `sign`.
  std::optional<Gate> plain(const Use& value, double sign = 1) {
    const auto sum = body_.polynomial_of(graph_.child(value, 0));
    if (!sum) return fail("a gate has too many terms");
    Gate gate;
    for (Monomial term : *sum) {
      term.coefficient *= sign;
      if (is_input(term)) {
        add(gate.input, product(graph_, term, dtype()));
        continue;
      }
      const Weighted recurrent = term.factors.size() == 1 ? weighted(term.factors[0]) : Weighted{};
      if (recurrent.of != h_.state) return fail("a gate is no sum of products with x and h");
      add(gate.recurrent, product(graph_, {term.coefficient, {recurrent.weights}}, dtype()));
    }
    return complete(std::move(gate));
  }

  // n of a GRU: input + r*(h . recurrent + bias), or input + (r*h) . recurrent
  struct Candidate {
    Gate gate;
    Use reset;
    bool linear_before_reset;
  };
  std::optional<Candidate> candidate(const Use& value) {
    const auto sum = body_.polynomial_of(graph_.child(value, 0));
    if (!sum) return std::nullopt;
    Candidate result{{}, {}, true};
    for (const Monomial& term : *sum) {
      if (is_input(term)) {
        add(result.gate.input, product(graph_, term, dtype()));
      } else if (!(term.factors.size() == 1 ? reset_state(term, result)
                                            : reset_product(term, result))) {
        fail("the reset gate is applied elsewhere");
        return std::nullopt;
      }
    }
    auto gate = complete(std::move(result.gate));
    if (!gate || !result.reset) return std::nullopt;
    result.gate = *std::move(gate);
    return result;
  }

  Label hidden() const { return *hidden_; }
  Label before() const { return before_; }
  const std::string& problem() const { return problem_; }

 private:
  struct Weighted {
    Use of, weights;
  };

  DType dtype() const { return h_.next.node->dtype; }

  std::nullopt_t fail(std::string problem) {
    problem_ = std::move(problem);
    return std::nullopt;
  }

  bool is_input(const Monomial& term) {
    return std::ranges::none_of(term.factors,
                                [&](const Use& use) { return body_.is_carried(use); });
  }

  void add(Use& sum, Use term) { sum = sum ? sum + term : std::move(term); }

  std::optional<Gate> complete(Gate gate) {
    if (!gate.input || !gate.recurrent) return fail("a gate lacks the input or the state");
    return gate;
  }

  // A product with weights along the units of the state: what is multiplied, over the axes of the
  // state, and the weights over hidden and before. Empty when it is not one.
  Weighted weighted(const Use& use) {
    if (use.node->kind != Kind::kContract) return {};
    std::vector<Use> operands = graph_.children(use);
    if (!body_.is_carried(operands[0])) std::swap(operands[0], operands[1]);
    const auto [of, weights] = std::pair(operands[0], widened(operands[1], dtype()));
    if (!weights || body_.is_carried(weights) || weights.flat().size() != 2) return {};
    const Labels over = axis::without(weights.flat(), use.flat());
    const Labels kept = axis::without(weights.flat(), over);
    if (over.size() != 1 || kept.size() != 1 || !axis::contains(h_.axes, kept[0])) return {};
    if (!hidden_) {
      hidden_ = kept[0];
      before_ = graph_.label(graph_.size(kept[0]));
    }
    if (*hidden_ != kept[0]) return {};
    return {renamed(of, over[0], {kept[0]}), renamed(weights, over[0], {before_})};
  }

  bool is_reset(const Use& reset, Candidate& into) {
    if (!is_logistic(reset) || (into.reset && !(into.reset == reset))) return false;
    into.reset = reset;
    return true;
  }

  bool reset_state(const Monomial& term, Candidate& into) {
    const Weighted scaled = weighted(term.factors[0]);
    if (!scaled.of || (into.reset && into.linear_before_reset)) return false;
    const auto sum = body_.polynomial_of(scaled.of);
    if (!sum || sum->size() != 1 || sum->front().factors.size() != 2) return false;
    const Monomial& only = sum->front();
    const std::size_t state = only.factors[0] == h_.state ? 0 : 1;
    if (!(only.factors[state] == h_.state) || !is_reset(only.factors[1 - state], into))
      return false;
    into.linear_before_reset = false;
    const double scale = term.coefficient * only.coefficient;
    add(into.gate.recurrent, product(graph_, {scale, {scaled.weights}}, dtype()));
    return true;
  }

  bool reset_product(const Monomial& term, Candidate& into) {
    if (term.factors.size() != 2 || !into.linear_before_reset) return false;
    const std::size_t reset = is_logistic(term.factors[0]) ? 0 : 1;
    const Use& other = term.factors[1 - reset];
    if (!is_reset(term.factors[reset], into)) return false;
    const bool is_bias = !body_.is_carried(other);
    const Weighted recurrent = is_bias ? Weighted{{}, other} : weighted(other);
    if (!is_bias && recurrent.of != h_.state) return false;
    add(is_bias ? into.gate.bias : into.gate.recurrent,
        product(graph_, {term.coefficient, {recurrent.weights}}, dtype()));
    return true;
  }

  Body& body_;
  Graph& graph_;
  const Carry& h_;
  std::optional<Label> hidden_;
  Label before_ = 0;
  std::string problem_;
};

CellReading miss(const RecurrentOp& op, std::string problem) {
  return {std::nullopt, op.name, std::move(problem)};
}

Cell cell_of(const RecurrentOp& op, std::vector<std::size_t> state, const Carry& h,
             const Gates& gates) {
  return {.op = op,
          .gates = {},
          .state = std::move(state),
          .next = h.next,
          .axes = h.axes,
          .hidden = gates.hidden(),
          .before = gates.before(),
          .activation = {}};
}

// The carry whose next value is `next`, over the labels of `h`.
std::optional<std::pair<std::size_t, Carry>> carry_with_next(Body& body, std::size_t h_index,
                                                             const Carry& h, const Use& next) {
  for (std::size_t j = 0; j < body.carries(); ++j) {
    if (j == h_index || !body.same_type(j, h_index)) continue;
    auto carry = body.carry(j);
    if (!carry) continue;
    axis::Substitution names;
    for (std::size_t axis = 0; axis < h.axes.size(); ++axis) {
      names.set(carry->axes[axis], {h.axes[axis]});
    }
    *carry = {names(carry->state), names(carry->next), h.axes};
    if (carry->next == next) return std::pair(j, *std::move(carry));
  }
  return std::nullopt;
}

// Both factors of a product of two without a coefficient; the first is `first` when that is one of
// them.
std::optional<std::pair<Use, Use>> pair_of(const Monomial& term, bool (*is_first)(const Use&)) {
  if (term.factors.size() != 2 || term.coefficient != 1) return std::nullopt;
  const std::size_t first = is_first(term.factors[0]) ? 0 : 1;
  return std::pair(term.factors[first], term.factors[1 - first]);
}

// The forget gate and the product i*g of c' = f*c + i*g.
struct CellUpdate {
  Use forget, input, update;
};
std::optional<CellUpdate> update_of(const Polynomial& sum, const Use& state) {
  if (sum.size() != 2) return std::nullopt;
  const auto keeps = [&](const Monomial& term) {
    return std::ranges::find(term.factors, state) != term.factors.end();
  };
  const std::size_t kept = keeps(sum[0]) ? 0 : 1;
  const auto old = pair_of(sum[kept], is_logistic), added = pair_of(sum[1 - kept], is_logistic);
  if (!old || !added || !(old->second == state)) return std::nullopt;
  if (!is_logistic(old->first) || !is_logistic(added->first) || !is_tanh(added->second)) {
    return std::nullopt;
  }
  return CellUpdate{old->first, added->first, added->second};
}

// h' = o*tanh(c')
CellReading read_lstm(Body& body, std::size_t index, const Carry& h, const Polynomial& next) {
  if (next.size() != 1) return {};
  const auto output = pair_of(next[0], [](const Use& use) { return !is_tanh(use); });
  if (!output || !is_tanh(output->second)) return {};
  const auto c = carry_with_next(body, index, h, body.graph.child(output->second, 0));
  if (!c) return {};
  const auto sum = body.polynomial_of(c->second.next);
  const auto update = sum ? update_of(*sum, c->second.state) : std::nullopt;
  if (!update || !is_logistic(output->first)) {
    return miss(kLstm, "the state is not sigmoid*c + sigmoid*tanh, or the output not its sigmoid");
  }
  Gates gates(body, h);
  std::vector<Gate> read;
  for (const Use& value : {update->input, output->first, update->forget, update->update}) {
    auto gate = gates.plain(value);
    if (!gate) return miss(kLstm, gates.problem());
    read.push_back(*std::move(gate));
  }
  Cell cell = cell_of(kLstm, {index, c->first}, h, gates);
  cell.gates = std::move(read);
  return {std::move(cell), kLstm.name, ""};
}

// (1 - by)*from + by*to
struct Blend {
  Use by, from, to;
};
std::optional<Blend> blend_of(const Polynomial& sum) {
  const auto single = std::ranges::find_if(
      sum, [](const Monomial& term) { return term.factors.size() == 1 && term.coefficient == 1; });
  if (sum.size() != 3 || single == sum.end()) return std::nullopt;
  const Use& from = single->factors[0];
  Blend blend{{}, from, {}};
  for (const Monomial& term : sum) {
    if (&term == &*single) continue;
    if (term.factors.size() != 2) return std::nullopt;
    const std::size_t at = term.factors[0] == from ? 0 : 1;
    const bool has_from = term.factors[at] == from;
    if (has_from && term.coefficient == -1) blend.by = term.factors[1 - at];
  }
  for (const Monomial& term : sum) {
    if (term.factors.size() != 2 || term.coefficient != 1 || !blend.by) continue;
    const std::size_t at = term.factors[0] == blend.by ? 0 : 1;
    if (term.factors[at] == blend.by) blend.to = term.factors[1 - at];
  }
  return blend.to ? std::optional(blend) : std::nullopt;
}

CellReading read_gru(Body& body, std::size_t index, const Carry& h, const Polynomial& next) {
  const auto blend = blend_of(next);
  if (!blend) return {};
  // Where z brings the new value instead of the old one, 1 - sigmoid(a) = sigmoid(-a).
  const bool flipped = blend->from == h.state;
  if (!flipped && !(blend->to == h.state)) return {};
  const Use& n = flipped ? blend->to : blend->from;
  if (!is_logistic(blend->by) || !is_tanh(n)) {
    return miss(kGru, "the gates are not sigmoid, or the new value not tanh");
  }
  Gates gates(body, h);
  const auto candidate = gates.candidate(n);
  const auto update = gates.plain(blend->by, flipped ? -1 : 1);
  const auto reset = candidate ? gates.plain(candidate->reset) : std::nullopt;
  if (!candidate || !update || !reset) {
    return miss(kGru,
                gates.problem().empty() ? "the new value has no reset gate" : gates.problem());
  }
  Cell cell = cell_of(kGru, {index}, h, gates);
  cell.gates = {*update, *reset, candidate->gate};
  cell.linear_before_reset = candidate->linear_before_reset;
  return {std::move(cell), kGru.name, ""};
}

CellReading read_rnn(Body& body, std::size_t index, const Carry& h, const Polynomial& next) {
  if (next.size() != 1 || next[0].factors.size() != 1 || next[0].coefficient != 1) return {};
  const Use& value = next[0].factors[0];
  if (value.node->kind != Kind::kPointwise || value.node->edges.size() != 1) return {};
  Gates gates(body, h);
  const auto gate = gates.plain(value);
  if (!gate) return {};
  const bool is_relu = is_pointwise(value, "relu");
  if (!is_tanh(value) && !is_relu) return miss(kRnn, "the activation is neither tanh nor relu");
  Cell cell = cell_of(kRnn, {index}, h, gates);
  cell.gates = {*gate};
  cell.activation = is_relu ? "Relu" : "Tanh";
  return {std::move(cell), kRnn.name, ""};
}

}  // namespace

CellReading read_cell(const Node& scan) {
  // Every result of the loop is read on its own; a cell has few.
  constexpr std::size_t kMostResults = 8;
  if (scan.prim->out.size() > kMostResults) return {};
  Body body(scan);
  CellReading nearly;
  for (std::size_t i = 0; i < body.carries(); ++i) {
    const auto h = body.carry(i);
    if (!h || !is_float(h->next.node->dtype)) continue;
    const auto next = body.polynomial_of(h->next);
    if (!next) continue;
    for (const auto read : {read_lstm, read_gru, read_rnn}) {
      CellReading reading = read(body, i, *h, *next);
      if (reading.cell) return reading;
      if (!reading.problem.empty()) nearly = std::move(reading);
    }
  }
  return nearly;
}

Use widened(const Use& operand, DType dtype) {
  if (operand.node->dtype == dtype) return operand;
  return holds_exactly(dtype, operand.node->dtype) ? convert(operand, dtype) : Use{};
}

}  // namespace jaxport::raise
