// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/emission.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/graph/pattern.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "lower/emit/prim.h"
#include "lower/macro/macro.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;

namespace {

std::string output_name(const axis::Program& program, std::size_t i) {
  if (i < program.output_names.size()) return program.output_names[i];
  return program.outputs.size() == 1 ? "output" : fmt::format("output_{}", i);
}

void define_inputs(Emission& e, const Values& arguments) {
  const Facts& facts = e.plan.facts;
  for (const Node* node : facts.order()) {
    if (node->kind != Kind::kInput) continue;
    const auto index = static_cast<std::size_t>(node->get<std::int64_t>("index"));
    const front::Type& type = facts.program.inputs[index].type;
    e.values.define(*node, arguments[index], axis::dims_of(node->out, type.shape));
  }
}

// What the choice wants to be converted where it is produced.
void make_ready(Emission& e, const Node& node) {
  for (const Choice::Ready& ready : e.choice.ready) {
    if (ready.value->id == node.id) e.values.prepare(node, ready.layout);
  }
}

void emit(Emission& e, const Node& node) {
  set_origin(e, node);
  e.values.set_consumer(&node);
  switch (node.kind) {
    case Kind::kPointwise:
      return emit_pointwise(e, node);
    case Kind::kReduce:
      return emit_reduce(e, node);
    case Kind::kContract:
      return emit_contract(e, node);
    case Kind::kIota:
      return emit_iota(e, node);
    case Kind::kPick:
      return emit_pick(e, node);
    case Kind::kSlice:
      return emit_slice(e, node);
    case Kind::kStack:
      return emit_stack(e, node);
    case Kind::kConcat:
      return emit_concat(e, node);
    case Kind::kRelayout:
      return emit_relayout(e, node);
    case Kind::kPrim:
      return emit_prim(e, node);
    case Kind::kMacro:
      if (const MacroRow* macro = find_macro(node)) return macro->emit(e, node);
      break;
    default:
      break;
  }
  throw Error("BUG", fmt::format("no emission for axis node '{}'", node.name));
}

}  // namespace

void emit_model(Emission& e) {
  const axis::Program& program = e.plan.facts.program;
  Values arguments;
  for (const axis::Input& input : program.inputs) {
    arguments.push_back(e.op.input(input.name, {input.type.dtype, input.type.shape}));
    e.shapes.add_input(arguments.back(), input.type.shape);
  }
  const Values results = emit_program(e, arguments);
  for (std::size_t i = 0; i < results.size(); ++i) e.op.output(results[i], output_name(program, i));
}

Values emit_program(Emission& e, const Values& arguments) {
  const Facts& facts = e.plan.facts;
  define_inputs(e, arguments);
  for (const Node* node : facts.order()) {
    if (facts.is_constant(node)) continue;
    try {
      if (node->kind != Kind::kInput) emit(e, *node);
      make_ready(e, *node);
    } catch (Error& error) {
      if (error.source().empty())
        error = front::located(std::move(error), facts.program.location(node->location));
      throw;
    }
  }
  e.values.set_consumer(nullptr);
  Values results;
  for (std::size_t i = 0; i < facts.program.outputs.size(); ++i) {
    const Facts::Output output = facts.output(i);
    results.push_back(e.values.bring_full(output.edge, output.sizes, output.dims));
  }
  return results;
}

void set_origin(Emission& e, const Node& node) {
  const front::Location& location = e.plan.facts.program.location(node.location);
  onnx::Origin origin{front::to_string(location), location.scope, node.location};
  // A node that uses a weight is named after the weight's owner: "blocks.3.attn.query". Of several
  // the one with the most axes counts, of equals the last. The weights of a loop are used inside.
  const bool has_body = node.prim && !node.prim->regions.empty();
  const Node* weight = nullptr;
  for (const Edge& edge : node.edges) {
    if (has_body || !e.values.is_constant(edge) || edge.node->path.empty()) continue;
    if (!weight || edge.axes.size() >= weight->out.size()) weight = edge.node;
  }
  const auto dot = weight ? weight->path.rfind('.') : std::string::npos;
  if (dot != std::string::npos) origin.scope = weight->path.substr(0, dot);
  e.op.set_origin(std::move(origin));
}

const MaybeWish& wish_for(const Emission& e, const Node& node) {
  return e.choice.wishes[e.plan.facts.index(&node)];
}

std::optional<Arrangement> wanted(const Emission& e, const Node& node, const LabelSet& labels) {
  const auto& wish = wish_for(e, node);
  if (!wish) return std::nullopt;
  Arrangement result;
  for (const Labels& dim : wish->dims) result.push_back(labels.keep(dim));
  return result;
}

std::optional<Labels> wanted_order(const Emission& e, const Node& node, const LabelSet& labels) {
  auto arrangement = wanted(e, node, labels);
  if (!arrangement) return std::nullopt;
  return axis::flatten(*arrangement);
}

double regret(const Emission& e, const Node& node, const Arrangement& result) {
  const auto& wish = wish_for(e, node);
  if (!wish) return 0;
  const LabelSet labels(node.sizes.size(), node.out);
  Arrangement have, want;
  auto without_units = [&](const Arrangement& from, Arrangement& to) {
    for (const Labels& dim : from) {
      if (Labels kept = labels.keep(dim); !kept.empty()) to.push_back(std::move(kept));
    }
  };
  without_units(result, have);
  without_units(*wanted(e, node, labels), want);
  if (wish->is_for_order()) {
    return axis::flatten(have) == axis::flatten(want) ? 0 : kTransposePrice + 0.5;
  }
  if (have == want) return 0;
  // Each label is an axis of its own here.
  axis::Pattern each;
  for (Label l = 0; l < static_cast<Label>(node.sizes.size()); ++l) each.push_back({l});
  const auto pieces = label_pieces(each, node.sizes);
  const double price =
      e.plan.conversions.find(to_layout(have, pieces), to_layout(want, pieces)).price;
  const double cost = price == kNever ? kTransposePrice : price;
  return cost > 0 ? cost + 0.5 : 0;
}

}  // namespace jaxport::lower
