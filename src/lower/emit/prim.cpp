// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/prim.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/graph/pattern.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "lower/emit/dimwise.h"
#include "lower/lower.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Kind;
using axis::Labels;
using axis::Node;

namespace {

// How the row wants the operands of a positional primitive, and how it delivers the results.
Order order_of(const axis::Node& node, const Row& row) {
  if (!row.order) return {};
  return row.order(node.prim->eqn, node.prim->in, node.prim->out);
}

Arrangement permuted(const Arrangement& arrangement, const Ints& perm) {
  if (perm.empty()) return arrangement;
  Arrangement result;
  for (std::int64_t i : perm) result.push_back(arrangement[i]);
  return result;
}

Ints entry(const std::vector<Ints>& orders, std::size_t i) {
  return i < orders.size() ? orders[i] : Ints{};
}

// "%1:f32[B,4] = route[k=4] %0:f32[B,1024]"
std::string equation_text(const axis::Node& node) {
  if (node.kind != Kind::kPrim) return std::string(node.name);
  front::Function function;
  front::Eqn eqn = node.prim->eqn;
  eqn.in.clear();
  eqn.out.clear();
  for (const auto& type : node.prim->in) eqn.in.push_back(function.add_value(type));
  for (const auto& type : node.prim->out) eqn.out.push_back(function.add_value(type));
  return front::print(function, eqn);
}

std::string_view primitive_of(const axis::Node& node) {
  return node.kind == Kind::kPrim ? std::string_view(node.prim->eqn.primitive) : node.name;
}

// The first node of the program, then of its regions, that has no row; nullptr when all have one.
const axis::Node* first_missing(const Plan& plan, int opset) {
  for (const axis::Node* node : plan.facts.order()) {
    const bool needs_row = node->kind == Kind::kPrim || node->kind == Kind::kPointwise;
    if (!needs_row || plan.facts.is_constant(node)) continue;
    const bool is_known = plan.lowerings.contains(primitive_of(*node)) ||
                          find_row(primitive_of(*node), opset) != nullptr;
    if (!is_known) return node;
  }
  for (const axis::Program* region : axis::regions(plan.facts.program)) {
    if (const auto* node = first_missing(*plan.regions.at(region), opset)) return node;
  }
  return nullptr;
}

}  // namespace

Arrangement prim_operand(const axis::Node& node, std::size_t i, int opset) {
  const Row* row = find_row(node.prim->eqn.primitive, opset);
  const Ints perm = row ? entry(order_of(node, *row).in, i) : Ints{};
  return permuted(axis::dims_of(node.edges[i].axes, node.prim->in[i].shape), perm);
}

const Row& row_for(const Emission& e, const Node& node) {
  static constexpr Row kUser{};  // its lowering is the plan's
  if (node.kind == Kind::kPrim && e.plan.lowerings.contains(primitive_of(node))) return kUser;
  return *find_row(primitive_of(node), e.op.opset());
}

void report_missing(const Plan& plan, int opset) {
  const axis::Node* first = first_missing(plan, opset);
  if (first == nullptr) return;
  const std::string_view name = primitive_of(*first);
  Error error("E012", missing(name, opset));
  error.equation(equation_text(*first));
  error.help(help_for_missing(name));
  throw Error(front::located(std::move(error), plan.facts.program.location(first->location)));
}

Values run_lowering(const Emission& e, const Node& node, const Row& row, Ctx& ctx) {
  try {
    const auto user = e.plan.lowerings.find(node.prim->eqn.primitive);
    return user != e.plan.lowerings.end() ? run_user_lowering(user->second, ctx)
                                          : row.lower(ctx).values;
  } catch (Error& error) {
    if (error.equation().empty()) error.equation(equation_text(node));
    throw;
  }
}

namespace {

Values emit_region(Emission& e, const Node& node, std::size_t region, onnx::Builder& builder,
                   const Values& arguments) {
  const Plan& plan = *e.plan.regions.at(node.prim->regions[region]);
  ShapeValues shapes(builder, e.shapes);
  if (front::function_mark(node.prim->eqn)) {
    for (const Value& argument : arguments) shapes.add_input(argument, argument.shape());
  }
  Emission inner{plan, plan.choice, builder, shapes};
  Values results = emit_program(inner, arguments);
  set_origin(e, node);  // the region's nodes had lines of their own
  return results;
}

Values lower_prim(Emission& e, const Node& node, const Row& row, const Order& order) {
  Values operands;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    const Arrangement to =
        permuted(axis::dims_of(node.edges[i].axes, node.prim->in[i].shape), entry(order.in, i));
    operands.push_back(e.values.bring_full(node.edges[i], node.sizes, to));
  }
  Ctx ctx(e.op, e.shapes, node.prim->eqn, std::move(operands), node.prim->in, node.prim->out);
  ctx.with_regions(node.prim->regions.size(),
                   [&](std::size_t region, onnx::Builder& builder, const Values& arguments) {
                     return emit_region(e, node, region, builder, arguments);
                   });
  return run_lowering(e, node, row, ctx);
}

}  // namespace

void emit_prim(Emission& e, const Node& node) {
  const Row& row = row_for(e, node);
  if (emit_dimwise(e, node, row)) return;
  const Order order = order_of(node, row);
  std::vector<std::size_t> operands;
  std::vector<axis::Pattern> axes;
  for (const Edge& edge : node.edges) {
    operands.push_back(e.plan.facts.index(edge.node));
    axes.push_back(edge.axes);
  }
  auto [found, fresh] =
      e.lowered.try_emplace({node.prim.get(), std::move(operands), std::move(axes)});
  if (fresh) found->second = lower_prim(e, node, row, order);
  const Arrangement result = permuted(axis::dims_of(node.out, node.prim->out[node.result].shape),
                                      entry(order.out, node.result));
  e.values.define(node, found->second.at(node.result), result);
}

}  // namespace jaxport::lower
