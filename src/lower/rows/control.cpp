// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan and calls of functions. What the body of a loop or branch does not change is not
// carried: the subgraph uses the values of the graph around it.
#include <algorithm>

#include "lower/rows/ctx.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {
namespace {

using onnx::Builder;
using Graph = std::shared_ptr<onnx::Graph>;

void append(Values& values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
}

Values tail(const Values& values, std::size_t first) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.end()};
}

Value input(Builder& op, const front::Type& type) { return op.input("", {type.dtype, type.shape}); }

// --- cond

// If nodes halve the branches from `first` to before `last`; an index out of range picks the
// nearest one.
Values branches(Ctx& c, Builder& op, std::size_t first, std::size_t last) {
  if (last - first == 1) {
    return c.region(first, op, tail(c.operands(), 1));
  }
  const std::size_t middle = (first + last) / 2;
  const Value index = c.in(0);
  const Value is_later =
      index.dtype() == DType::kBool
          ? index
          : op.GreaterOrEqual(index, op.scalar(static_cast<double>(middle), index.dtype()));
  const Graph later =
      subgraph(op, [&](Builder& inner) { return branches(c, inner, middle, last); });
  const Graph earlier =
      subgraph(op, [&](Builder& inner) { return branches(c, inner, first, middle); });
  Values results = op.call_n("If", {is_later}, c.result_count(),
                             {{"then_branch", later}, {"else_branch", earlier}});
  for (std::size_t i = 0; i < results.size(); ++i) op.set_shape(results[i], c.out_type(i).shape);
  return results;
}

Results cond(Ctx& c) { return branches(c, c.op, 0, c.region_count()); }

// --- calls that become functions

// The operands are inputs of the body, so that nothing around it is part of the function.
Results call(Ctx& c) {
  const auto mark = front::function_mark(c.eqn());
  if (!mark) c.unsupported("the call is not marked as a function");
  const Graph body = subgraph(c.op, [&](Builder& op) {
    Values arguments;
    for (std::size_t i = 0; i < c.operands().size(); ++i) {
      arguments.push_back(input(op, c.in_type(i)));
    }
    return c.region(0, op, arguments);
  });
  return c.op.call_body(mark->domain, mark->name, c.operands(), body, mark->shares);
}

// --- loops

// The carry of a loop. Operands before it are constants; a carry that the body hands on as it is
// counts as one of them.
struct Carry {
  Carry(const Ctx& c, const front::Function& body, std::size_t body_consts, std::size_t first_carry,
        std::size_t count)
      : first(first_carry) {
    for (std::size_t i = 0; i < count; ++i) {
      if (body.results[i] != body.params[body_consts + i]) carried.push_back(i);
    }
    for (std::size_t i : carried) initial.push_back(c.in(first + i));
  }

  // Inputs of the body's graph for the carry, set into the arguments of the region.
  void add_inputs(const Ctx& c, Builder& op, Values& arguments) const {
    for (std::size_t i : carried) arguments[first + i] = input(op, c.in_type(first + i));
  }
  Values next(const Values& results, std::size_t offset) const {
    Values values;
    for (std::size_t i : carried) values.push_back(results[offset + i]);
    return values;
  }

  std::size_t first;
  std::vector<std::size_t> carried;
  Values initial;
};

// The results of the ONNX node at the places of the equation's results.
Values spread(Ctx& c, const Carry& carry, std::size_t count, const Values& outputs) {
  Values results = tail(c.operands(), carry.first);
  results.resize(c.result_count());
  auto output = outputs.begin();
  for (std::size_t i : carry.carried) results[i] = *output++;
  for (std::size_t i = count; i < results.size(); ++i) results[i] = *output++;
  for (std::size_t i = 0; i < results.size(); ++i) c.op.set_shape(results[i], c.out_type(i).shape);
  return results;
}

Results while_loop(Ctx& c) {
  const auto loop = front::WhileParams::read(c.eqn());
  const std::size_t count = c.result_count();
  const Carry carry(c, *loop.body, loop.body_consts, loop.consts(), count);
  Values in{Value(), c.region(0, c.op, c.operands())[0]};
  append(in, carry.initial);
  const Graph body = subgraph(c.op, [&](Builder& op) {
    input(op, {DType::kI64, {}});
    input(op, {DType::kBool, {}});
    Values arguments = c.operands();
    carry.add_inputs(c, op, arguments);
    const Values results = c.region(1, op, arguments);
    Values outputs{results[0]};
    append(outputs, carry.next(results, 1));
    return outputs;
  });
  return spread(c, carry, count, c.op.call_n("Loop", in, carry.carried.size(), {{"body", body}}));
}

// --- scan

struct ScanParts : front::ScanParams {
  explicit ScanParts(const Ctx& c)
      : ScanParams(read(c.eqn())), carry(c, *body, consts, consts, carries) {}

  // The inputs of the body, then its outputs: the carry and one step of each y.
  Values step(Ctx& c, Builder& op) const {
    Values arguments = c.operands();
    carry.add_inputs(c, op, arguments);
    for (std::size_t i = first_x(); i < arguments.size(); ++i) {
      front::Type type = c.in_type(i);
      type.shape.erase(type.shape.begin());
      arguments[i] = input(op, type);
    }
    const Values results = c.region(0, op, arguments);
    Values outputs = carry.next(results, 0);
    append(outputs, tail(results, carries));
    return outputs;
  }
  std::size_t outputs(const Ctx& c) const {
    return carry.carried.size() + c.result_count() - carries;
  }

  Carry carry;
};

// No steps: the carry as it came, and results without elements.
Values no_step(Ctx& c, Builder& op, const ScanParts& scan) {
  Values outputs = scan.carry.initial;
  for (std::size_t i = scan.carries; i < c.result_count(); ++i) {
    const auto& [dtype, shape] = c.out_type(i);
    outputs.push_back(
        op.call_with_shape("Expand", {op.scalar(0, dtype), c.shape(shape)}, {}, shape));
  }
  return outputs;
}

// ONNX Runtime refuses a Scan over no steps, which a symbolic length may turn out to be.
Values counted_loop(Ctx& c, const ScanParts& scan) {
  Values in{c.reshape(c.dim(scan.length), {}), Value()};
  append(in, scan.carry.initial);
  const Graph body = subgraph(c.op, [&](Builder& op) {
    input(op, {DType::kI64, {}});
    const Value go_on = input(op, {DType::kBool, {}});
    Values outputs{go_on};
    append(outputs, scan.step(c, op));
    return outputs;
  });
  return c.op.call_n("Loop", in, scan.outputs(c), {{"body", body}});
}

Results scan(Ctx& c) {
  const ScanParts scan(c);
  const std::size_t ys = c.result_count() - scan.carries;
  Values xs = tail(c.operands(), scan.first_x());
  if (xs.empty() && !scan.length.is_static() && (ys == 0 || !scan.reverse)) {
    return spread(c, scan.carry, scan.carries, counted_loop(c, scan));
  }
  const bool has_xs = !xs.empty();
  // Scan needs something to scan over.
  if (!has_xs) xs.push_back(c.expand(c.op.scalar(0, DType::kBool), {scan.length}));
  Values in = scan.carry.initial;
  append(in, xs);
  const auto steps = [&](Builder& outer) {
    const Graph body = subgraph(outer, [&](Builder& op) {
      Values outputs = scan.step(c, op);
      if (!has_xs) input(op, {DType::kBool, {}});
      return outputs;
    });
    onnx::Args args{{"body", body}, {"num_scan_inputs", std::ssize(xs)}};
    if (scan.reverse) {
      args.emplace_back("scan_input_directions", Ints(xs.size(), 1));
      args.emplace_back("scan_output_directions", Ints(ys, 1));
    }
    return outer.call_n("Scan", in, scan.outputs(c), std::move(args));
  };
  const Values outputs = onnx::can_be_zero(scan.length)
                             ? unless_zero(c.op, c.dim(scan.length), steps,
                                           [&](Builder& op) { return no_step(c, op, scan); })
                             : steps(c.op);
  return spread(c, scan.carry, scan.carries, outputs);
}

constexpr Row kControlRows[] = {
    {"cond", cond},
    {"jit", call},
    {"scan", scan},
    {"while", while_loop},
};
static_assert(std::ranges::is_sorted(kControlRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> control_rows() { return kControlRows; }
}  // namespace jaxport::lower
