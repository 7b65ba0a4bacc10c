// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/recurrent.h"

#include <algorithm>
#include <array>
#include <utility>

#include "axis/translate/region.h"
#include "front/params.h"

namespace jaxport::raise {
namespace {

using front::Attr;
using front::Attrs;
using front::List;
using front::Type;
using front::ValueId;

constexpr DType kDType = DType::kF32;

class Step;

// A value of a step. Arithmetic on it adds an equation.
struct Quantity {
  Step* step = nullptr;
  ValueId id = 0;
};

// One step of a cell as a function, written with the arithmetic of its formula.
class Step {
 public:
  Step(const Cell& cell, const RecurrentSizes& sizes)
      : rows_(static_cast<std::int64_t>(cell.gates.size()) * sizes.hidden.value()), sizes_(sizes) {
    function_.name = cell.op.name;
  }

  Quantity param(const char* name, Dims shape) {
    function_.params.push_back(function_.add_value({kDType, std::move(shape)}, name));
    return {this, function_.params.back()};
  }
  Quantity constant(double value) {
    const ValueId id = function_.add_value({kDType, {}});
    function_.constants.push_back({id, scalar(kDType, value), ""});
    return {this, id};
  }
  // Of operands of one shape, or scalars.
  Quantity pointwise(std::string primitive, const std::vector<Quantity>& in) {
    const auto rank = [&](const Quantity& x) { return shape(x).size(); };
    return op(std::move(primitive), in, shape(*std::ranges::max_element(in, {}, rank)));
  }
  Quantity squeezed(const Quantity& x) {
    const Dims& all = shape(x);
    return op("squeeze", {x}, Dims(all.begin() + 1, all.end()), {{"dimensions", Ints{0}}});
  }
  // x . w^T for the gates from `first` to before `last`
  Quantity times(const Quantity& x, const Quantity& weights, std::int64_t first,
                 std::int64_t last) {
    const Dim columns = shape(weights)[1];
    const Quantity part = rows(weights, first, last, {(last - first) * unit_count(), columns});
    const front::DotParams dims{{1}, {1}, {}, {}};
    return op("dot_general", {x, part}, shape_of(last - first), dims.attrs());
  }
  // The bias of these gates, for every element of the batch; those of the state follow those of x.
  Quantity bias(const Quantity& b, std::int64_t first, std::int64_t last) {
    const Dims wide = shape_of(last - first);
    const Quantity part = rows(b, first, last, {wide[1]});
    return op("broadcast_in_dim", {part}, wide,
              {{"broadcast_dimensions", Ints{1}}, {"shape", wide}});
  }
  Quantity gate(const Quantity& all, std::int64_t k) {
    const std::int64_t n = unit_count();
    return op(
        "slice", {all}, {sizes_.batch, sizes_.hidden},
        {{"limit_indices", List{sizes_.batch, (k + 1) * n}}, {"start_indices", Ints{0, k * n}}});
  }
  // The next state with the unit dim that ONNX gives it.
  Quantity state(const Quantity& x) {
    const Dims wide{1, sizes_.batch, sizes_.hidden};
    return op("broadcast_in_dim", {x}, wide,
              {{"broadcast_dimensions", Ints{1, 2}}, {"shape", wide}});
  }
  front::Function finish(const std::vector<Quantity>& results) {
    function_.results = ids(results);
    return std::move(function_);
  }
  std::int64_t row_count() const { return rows_; }

 private:
  static std::vector<ValueId> ids(const std::vector<Quantity>& terms) {
    std::vector<ValueId> result;
    for (const Quantity& term : terms) result.push_back(term.id);
    return result;
  }
  const Dims& shape(const Quantity& x) const { return function_.type(x.id).shape; }
  Quantity op(std::string primitive, const std::vector<Quantity>& in, Dims result,
              Attrs attrs = {}) {
    const ValueId id = function_.add_value({kDType, std::move(result)});
    function_.eqns.push_back({std::move(primitive), ids(in), {id}, std::move(attrs)});
    return {this, id};
  }
  std::int64_t unit_count() const { return sizes_.hidden.value(); }
  Dims shape_of(std::int64_t gate_count) const { return {sizes_.batch, gate_count * unit_count()}; }
  Quantity rows(const Quantity& x, std::int64_t first, std::int64_t last, Dims result) {
    List start{first * unit_count()}, limit{last * unit_count()};
    if (result.size() > 1) {
      start.emplace_back(0);
      limit.emplace_back(result[1]);
    }
    return op("slice", {x}, std::move(result),
              {{"limit_indices", limit}, {"start_indices", start}});
  }

  front::Function function_;
  std::int64_t rows_;
  RecurrentSizes sizes_;
};

Quantity operator+(const Quantity& a, const Quantity& b) {
  return a.step->pointwise("add", {a, b});
}
Quantity operator*(const Quantity& a, const Quantity& b) {
  return a.step->pointwise("mul", {a, b});
}
Quantity operator-(double a, const Quantity& b) {
  return b.step->pointwise("sub", {b.step->constant(a), b});
}
Quantity max(const Quantity& a, double b) {
  return a.step->pointwise("max", {a, a.step->constant(b)});
}
Quantity logistic(const Quantity& x) { return x.step->pointwise("logistic", {x}); }
Quantity tanh(const Quantity& x) { return x.step->pointwise("tanh", {x}); }

// The parameters of a step without the unit dims of ONNX.
struct Parameters {
  Parameters(Step& s, const Cell& cell, const RecurrentSizes& sizes) {
    const Dim rows = s.row_count();
    const Quantity w_in = s.param("w", {1, rows, sizes.input});
    const Quantity r_in = s.param("r", {1, rows, sizes.hidden});
    const Quantity b_in = s.param("b", {1, rows + rows});
    std::vector<Quantity> state;
    for (std::size_t i = 0; i < cell.state.size(); ++i) {
      state.push_back(s.param(i == 0 ? "h" : "c", {1, sizes.batch, sizes.hidden}));
    }
    x = s.param("x", {sizes.batch, sizes.input});
    w = s.squeezed(w_in);
    r = s.squeezed(r_in);
    b = s.squeezed(b_in);
    h = s.squeezed(state[0]);
    c = state.size() > 1 ? s.squeezed(state[1]) : h;
  }
  Quantity w, r, b, h, c, x;
};

// x . w^T + h . r^T + both biases, for the first `count` gates of `all`
Quantity gates(Step& s, const Parameters& p, std::int64_t count, std::int64_t all) {
  const Quantity by_w = s.times(p.x, p.w, 0, count), from_x = by_w + s.bias(p.b, 0, count);
  const Quantity by_r = s.times(p.h, p.r, 0, count), from_h = by_r + s.bias(p.b, all, all + count);
  return from_x + from_h;
}

front::Function lstm_step(Step& s, const Parameters& p) {
  const Quantity all = gates(s, p, 4, 4);
  const Quantity i = logistic(s.gate(all, 0)), o = logistic(s.gate(all, 1));
  const Quantity f = logistic(s.gate(all, 2)), g = tanh(s.gate(all, 3));
  const Quantity kept = f * p.c, c = kept + i * g;
  const Quantity h = s.state(o * tanh(c));
  return s.finish({h, s.state(c), h});
}

front::Function gru_step(Step& s, const Parameters& p, bool linear_before_reset) {
  const Quantity both = gates(s, p, 2, 3);
  const Quantity z = logistic(s.gate(both, 0)), r = logistic(s.gate(both, 1));
  const Quantity by_r = s.times(linear_before_reset ? p.h : r * p.h, p.r, 2, 3);
  Quantity from_h = by_r + s.bias(p.b, 5, 6);
  if (linear_before_reset) from_h = r * from_h;
  const Quantity by_w = s.times(p.x, p.w, 2, 3), from_x = by_w + s.bias(p.b, 2, 3);
  const Quantity n = tanh(from_x + from_h), kept = z * p.h;
  const Quantity h = s.state((1 - z) * n + kept);
  return s.finish({h, h});
}

front::Function rnn_step(Step& s, const Parameters& p, bool is_relu) {
  const Quantity sum = gates(s, p, 1, 1);
  const Quantity h = s.state(is_relu ? max(sum, 0) : tanh(sum));
  return s.finish({h, h});
}

front::Function step_of(const Cell& cell, const RecurrentSizes& sizes) {
  Step step(cell, sizes);
  const Parameters parameters(step, cell, sizes);
  if (cell.op.name == kLstm.name) return lstm_step(step, parameters);
  if (cell.op.name == kGru.name) return gru_step(step, parameters, cell.linear_before_reset);
  return rnn_step(step, parameters, cell.activation == "Relu");
}

std::vector<Type> types_of(const front::Function& function, const std::vector<ValueId>& ids) {
  std::vector<Type> types;
  types.reserve(ids.size());
  for (ValueId id : ids) types.push_back(function.type(id));
  return types;
}

std::unique_ptr<axis::Program> region_of(const axis::Node& scan, const front::Function& step) {
  axis::RegionBuilder region(axis::Inliner(*scan.prim->regions[0], scan.location));
  std::vector<axis::View> arguments;
  for (ValueId id : step.params) arguments.push_back(region.variable(step.type(id)));
  return region.finish(region.run(step, std::move(arguments)), types_of(step, step.results));
}

Attrs scan_attrs(const front::Eqn& scan, std::shared_ptr<const front::Function> step,
                 std::size_t carries) {
  Attrs attrs = scan.attrs;
  front::set(attrs, "jaxpr", std::move(step));
  front::set(attrs, "num_carry", carries);
  front::set(attrs, "num_consts", 3);
  return attrs;
}

}  // namespace

std::shared_ptr<const axis::PrimInfo> recurrent_prim(axis::Graph& graph, const axis::Node& scan,
                                                     const Cell& cell, const RecurrentSizes& sizes,
                                                     bool starts_at_zero) {
  const auto step = std::make_shared<const front::Function>(step_of(cell, sizes));
  auto info = std::make_shared<axis::PrimInfo>();
  info->eqn.primitive = cell.op.name;
  info->eqn.location = scan.prim->eqn.location;
  info->eqn.attrs = scan_attrs(scan.prim->eqn, step, cell.state.size());
  const RecurrentAttrs own{cell.activation, cell.linear_before_reset, starts_at_zero};
  std::ranges::move(to_attrs(own), std::back_inserter(info->eqn.attrs));
  std::ranges::sort(info->eqn.attrs, {}, [](const auto& attr) { return attr.first; });
  info->in = types_of(*step, step->params);
  info->in.back().shape.insert(info->in.back().shape.begin(), sizes.steps);
  info->out = types_of(*step, step->results);
  info->out.back().shape.insert(info->out.back().shape.begin(), sizes.steps);
  info->regions = {graph.own(region_of(scan, *step))};
  return info;
}

axis::Use expand_recurrent(axis::Graph& graph, const axis::Use& use) {
  auto info = std::make_shared<axis::PrimInfo>(*use.node->prim);
  info->eqn.primitive = "scan";
  const Attrs own = to_attrs(RecurrentAttrs{});
  std::erase_if(info->eqn.attrs,
                [&](const auto& attr) { return front::find(own, attr.first) != nullptr; });
  axis::Use result = graph.prim(info, graph.children(use))[use.node->result];
  result.labels = use.labels;
  return result;
}

}  // namespace jaxport::raise
