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

// One step of a cell as a function, written with the arithmetic of its formula.
class Step {
 public:
  Step(const Cell& cell, const RecurrentSizes& sizes)
      : rows_(static_cast<std::int64_t>(cell.gates.size()) * sizes.hidden.value()), sizes_(sizes) {
    function_.name = cell.op;
  }

  ValueId param(const char* name, Dims shape) {
    const ValueId id = function_.add_value({kDType, std::move(shape)}, name);
    function_.params.push_back(id);
    return id;
  }
  ValueId op(std::string primitive, std::vector<ValueId> in, Dims shape, Attrs attrs = {}) {
    const ValueId id = function_.add_value({kDType, std::move(shape)});
    function_.eqns.push_back({std::move(primitive), std::move(in), {id}, std::move(attrs)});
    return id;
  }
  ValueId unit(std::string primitive, std::vector<ValueId> in) {  // of the shape of the state
    return op(std::move(primitive), std::move(in), {sizes_.batch, sizes_.hidden});
  }
  ValueId squeezed(ValueId value) {
    const Dims& shape = function_.type(value).shape;
    return op("squeeze", {value}, Dims(shape.begin() + 1, shape.end()), {{"dimensions", Ints{0}}});
  }
  // x . w^T for the gates from `first` to before `last`
  ValueId times(ValueId x, ValueId weights, std::int64_t first, std::int64_t last) {
    const Dim columns = function_.type(weights).shape[1];
    const ValueId part = rows(weights, first, last, {(last - first) * unit_count(), columns});
    const front::DotParams dims{{1}, {1}, {}, {}};
    return op("dot_general", {x, part}, shape_of(last - first), dims.attrs());
  }
  // The bias of these gates, for every element of the batch; those of the state follow those of x.
  ValueId bias(ValueId b, std::int64_t first, std::int64_t last) {
    const Dims shape = shape_of(last - first);
    const ValueId part = rows(b, first, last, {shape[1]});
    return op("broadcast_in_dim", {part}, shape,
              {{"broadcast_dimensions", Ints{1}}, {"shape", shape}});
  }
  ValueId gate(ValueId all, std::int64_t k) {
    const std::int64_t n = unit_count();
    return op(
        "slice", {all}, {sizes_.batch, sizes_.hidden},
        {{"limit_indices", List{sizes_.batch, (k + 1) * n}}, {"start_indices", Ints{0, k * n}}});
  }
  // The next state with the unit dim that ONNX gives it.
  ValueId state(ValueId value) {
    const Dims shape{1, sizes_.batch, sizes_.hidden};
    return op("broadcast_in_dim", {value}, shape,
              {{"broadcast_dimensions", Ints{1, 2}}, {"shape", shape}});
  }
  ValueId constant(double value) {
    const ValueId id = function_.add_value({kDType, {}});
    function_.constants.push_back({id, scalar(kDType, value), ""});
    return id;
  }
  front::Function finish(std::vector<ValueId> results) {
    function_.results = std::move(results);
    return std::move(function_);
  }
  std::int64_t unit_count() const { return sizes_.hidden.value(); }
  std::int64_t row_count() const { return rows_; }
  Dims shape_of(std::int64_t gate_count) const { return {sizes_.batch, gate_count * unit_count()}; }

 private:
  ValueId rows(ValueId value, std::int64_t first, std::int64_t last, Dims shape) {
    List start{first * unit_count()}, limit{last * unit_count()};
    if (shape.size() > 1) {
      start.emplace_back(0);
      limit.emplace_back(shape[1]);
    }
    return op("slice", {value}, std::move(shape),
              {{"limit_indices", limit}, {"start_indices", start}});
  }

  front::Function function_;
  std::int64_t rows_;
  RecurrentSizes sizes_;
};

// The parameters of a step without the unit dims of ONNX.
struct Parameters {
  Parameters(Step& s, const Cell& cell, const RecurrentSizes& sizes) {
    const Dim rows = s.row_count();
    const ValueId w_in = s.param("w", {1, rows, sizes.input});
    const ValueId r_in = s.param("r", {1, rows, sizes.hidden});
    const ValueId b_in = s.param("b", {1, rows + rows});
    std::vector<ValueId> state;
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
  ValueId w, r, b, h, c, x;
};

// x . w^T + h . r^T + both biases, for the first `count` gates of `all`
ValueId gates(Step& s, const Parameters& p, std::int64_t count, std::int64_t all) {
  const Dims shape = s.shape_of(count);
  const ValueId from_x = s.op("add", {s.times(p.x, p.w, 0, count), s.bias(p.b, 0, count)}, shape);
  const ValueId from_h =
      s.op("add", {s.times(p.h, p.r, 0, count), s.bias(p.b, all, all + count)}, shape);
  return s.op("add", {from_x, from_h}, shape);
}

front::Function lstm_step(Step& s, const Parameters& p) {
  const ValueId all = gates(s, p, 4, 4);
  const ValueId i = s.unit("logistic", {s.gate(all, 0)}), o = s.unit("logistic", {s.gate(all, 1)});
  const ValueId f = s.unit("logistic", {s.gate(all, 2)}), g = s.unit("tanh", {s.gate(all, 3)});
  const ValueId c = s.unit("add", {s.unit("mul", {f, p.c}), s.unit("mul", {i, g})});
  const ValueId h = s.state(s.unit("mul", {o, s.unit("tanh", {c})}));
  return s.finish({h, s.state(c), h});
}

front::Function gru_step(Step& s, const Parameters& p, bool linear_before_reset) {
  const ValueId both = gates(s, p, 2, 3);
  const ValueId z = s.unit("logistic", {s.gate(both, 0)}),
                r = s.unit("logistic", {s.gate(both, 1)});
  const ValueId of = linear_before_reset ? p.h : s.unit("mul", {r, p.h});
  ValueId from_h = s.unit("add", {s.times(of, p.r, 2, 3), s.bias(p.b, 5, 6)});
  if (linear_before_reset) from_h = s.unit("mul", {r, from_h});
  const ValueId from_x = s.unit("add", {s.times(p.x, p.w, 2, 3), s.bias(p.b, 2, 3)});
  const ValueId n = s.unit("tanh", {s.unit("add", {from_x, from_h})});
  const ValueId kept = s.unit("mul", {z, p.h});
  const ValueId fresh = s.unit("mul", {s.unit("sub", {s.constant(1), z}), n});
  const ValueId h = s.state(s.unit("add", {fresh, kept}));
  return s.finish({h, h});
}

front::Function rnn_step(Step& s, const Parameters& p, bool is_relu) {
  const ValueId sum = gates(s, p, 1, 1);
  const ValueId h = s.state(is_relu ? s.unit("max", {sum, s.constant(0)}) : s.unit("tanh", {sum}));
  return s.finish({h, h});
}

front::Function step_of(const Cell& cell, const RecurrentSizes& sizes) {
  Step step(cell, sizes);
  const Parameters parameters(step, cell, sizes);
  if (cell.op == "lstm") return lstm_step(step, parameters);
  if (cell.op == "gru") return gru_step(step, parameters, cell.linear_before_reset);
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
  info->eqn.primitive = cell.op;
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
