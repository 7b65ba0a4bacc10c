// SPDX-License-Identifier: Apache-2.0
#include "target/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/every_graph.h"
#include "target/kernel_facts.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::Values;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Values operands(Builder& op, const Node& node) {
  Values result;
  for (onnx::ValueId id : node.in) result.emplace_back(&op, id);
  return result;
}

// The same op, or one like it, on other operands.
Value again(Builder& op, const Node& node, std::string_view name, const Values& in) {
  onnx::Args args;
  for (const onnx::Attribute& attribute : node.attrs) {
    args.emplace_back(attribute.name, std::int64_t{0});
    args.back().attribute = attribute;
  }
  return op.call(name, in, std::move(args));
}

// Where keeps the sign of a zero in its last operand only: the others are never 0 here.
Value choose(const Value& condition, double number, const Value& otherwise) {
  return onnx::where(condition, number, otherwise);
}

Value flags(const Value& condition) { return onnx::cast(condition, DType::kF32); }

// --- what mends the result `raw` of a node

// The NaN among the operands at `places` take part in a maximum of their own.
Value with_nan(Builder& op, const Node& node, const Value& raw, std::string_view maximum,
               std::initializer_list<std::size_t> places) {
  Values in = operands(op, node);
  for (std::size_t i : places) in[i] = flags(is_nan(in[i]));
  return choose(again(op, node, maximum, in) > 0, kNaN, raw);
}

Value mend_reduce(Builder& op, const Node& node, const Value& raw) {
  return with_nan(op, node, raw, "ReduceMax", {0});
}

// The flags have a maximum, whether the numbers have a maximum or a minimum.
Value mend_scatter(Builder& op, const Node& node, const Value& raw) {
  Node maximum = node;
  for (onnx::Attribute& attr : maximum.attrs) {
    if (attr.name == "reduction") attr.value = std::string("max");
  }
  return with_nan(op, maximum, raw, node.op, {0, 2});
}

bool may_be_nan(const Builder& op, onnx::ValueId id) {
  if (id == onnx::kAbsent) return false;
  const Tensor* constant = op.known(id);
  if (constant == nullptr) return true;
  for (std::int64_t i = 0; i < constant->size(); ++i) {
    if (std::isnan(constant->at(i))) return true;
  }
  return false;
}

// Element by element: NaN where one of the operands is.
Value mend_element(Builder& op, const Node& node, const Value& raw) {
  Value is_any;
  for (onnx::ValueId id : node.in) {
    if (!may_be_nan(op, id)) continue;
    const Value here = is_nan(Value(&op, id));
    is_any = is_any ? is_any | here : here;
  }
  return is_any ? choose(is_any, kNaN, raw) : raw;
}

Value mend_pool_of_nan(Builder& op, const Node& node, const Value& raw) {
  return with_nan(op, node, raw, "MaxPool", {0});
}

Value mend_pool_of_infinities(Builder& op, const Node& node, const Value& raw) {
  const Value x(&op, node.in[0]);
  const Value largest = again(op, node, "MaxPool", {flags(x > -kInfinity)});
  return choose(largest <= 0, -kInfinity, raw);
}

// where(c, a, b) = where(!c, 1, a) * where(c, 1, b). ONNX Runtime turns Where behind Not around,
// which would put a second again.
Value mend_where(Builder& op, const Node& node, const Value&) {
  const Value condition(&op, node.in[0]), a(&op, node.in[1]), b(&op, node.in[2]);
  const Value opposite = op.Xor(condition, op.constant(scalar(DType::kBool, 1)));
  const Value from_a = choose(opposite, 1, a);
  return from_a * choose(condition, 1, b);
}

Value mend_sign(Builder& op, const Node& node, const Value& raw) {
  const Value x(&op, node.in[0]);
  return onnx::where(abs(x) > 0, raw, x);
}

Value mend_sigmoid(Builder& op, const Node& node, const Value&) {
  return reciprocal(1 + exp(-Value(&op, node.in[0])));
}

// tanh(x) = x for |x| < 2^-13, where x^3 / 3 is less than half a unit in the last place of f32.
Value mend_tanh(Builder& op, const Node& node, const Value& raw) {
  const Value x(&op, node.in[0]);
  return onnx::where(abs(x) >= 0x1p-13, raw, x);
}

// --- which nodes

bool always(const Builder&, const Node&) { return true; }

bool is_f32(const Builder& op, const Node& node) {
  return op.info(node.out[0]).type->dtype == DType::kF32;
}

bool finds_extreme(const Builder&, const Node& node) {
  const std::string_view name = text_attribute(node, "reduction", "");
  return name == "max" || name == "min";
}

// Whether the operand that loses its sign may be a negative zero.
bool may_lose_sign(const Builder& op, const Node& node) {
  const Tensor* constant = op.known(node.in[1]);
  if (constant == nullptr) return true;
  for (std::int64_t i = 0; i < constant->size(); ++i) {
    if (constant->at(i) == 0 && std::signbit(constant->at(i))) return true;
  }
  return false;
}

struct Mend {
  std::string_view op;
  bool KernelFacts::*fact;
  bool (*applies)(const Builder&, const Node&);
  Value (*mend)(Builder&, const Node&, const Value& raw);
};
constexpr Mend kMends[] = {
    {"Clip", &KernelFacts::ignores_nan_in_clip, always, mend_element},
    {"Exp", &KernelFacts::ignores_nan_in_exp, always, mend_element},
    {"Max", &KernelFacts::ignores_nan_in_clip, always, mend_element},
    {"MaxPool", &KernelFacts::clamps_max_pool, always, mend_pool_of_infinities},
    {"MaxPool", &KernelFacts::ignores_nan_in_max, always, mend_pool_of_nan},
    {"Min", &KernelFacts::ignores_nan_in_clip, always, mend_element},
    {"ReduceMax", &KernelFacts::ignores_nan_in_max, always, mend_reduce},
    {"ReduceMin", &KernelFacts::ignores_nan_in_max, always, mend_reduce},
    {"Relu", &KernelFacts::ignores_nan_in_clip, always, mend_element},
    {"ScatterElements", &KernelFacts::ignores_nan_in_max, finds_extreme, mend_scatter},
    {"ScatterND", &KernelFacts::ignores_nan_in_max, finds_extreme, mend_scatter},
    {"Sigmoid", &KernelFacts::has_inexact_sigmoid, is_f32, mend_sigmoid},
    {"Sign", &KernelFacts::loses_sign_in_sign, always, mend_sign},
    {"Tanh", &KernelFacts::has_inexact_tanh, is_f32, mend_tanh},
    {"Where", &KernelFacts::loses_sign_in_where, may_lose_sign, mend_where},
};

std::vector<const Mend*> mends_of(const Builder& op, const Node& node, const KernelFacts& facts) {
  std::vector<const Mend*> result;
  if (!node.domain.empty() || node.out.empty() || node.out[0] == onnx::kAbsent) return result;
  const auto& type = op.info(node.out[0]).type;
  if (!type || !is_float(type->dtype)) return result;
  for (const Mend& mend : kMends) {
    if (mend.op == node.op && facts.*mend.fact && mend.applies(op, node)) result.push_back(&mend);
  }
  return result;
}

// The node gives another value, of which its mended result is made.
void mend(Model& model, Builder& op, Graph& graph, Node node,
          const std::vector<const Mend*>& mends) {
  op.set_origin(model.origins[node.origin]);
  const onnx::ValueId result = node.out[0];
  const onnx::TensorType type = *model.values[result].type;
  model.values.push_back({type, ""});
  node.out[0] = static_cast<onnx::ValueId>(model.values.size() - 1);
  const std::uint32_t origin = node.origin;
  const Node original = node;
  graph.nodes.push_back(std::move(node));
  Value mended(&op, original.out[0]);
  for (const Mend* each : mends) mended = each->mend(op, original, mended);
  Node identity;
  identity.op = "Identity";
  identity.in = {mended.id()};
  identity.out = {result};
  identity.origin = origin;
  graph.nodes.push_back(std::move(identity));
}

}  // namespace

bool make_exact(Model& model, const Target& target) {
  const KernelFacts& facts = kernel_facts(target);
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    bool changed = false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      const auto mends = mends_of(op, node, facts);
      if (mends.empty()) {
        graph.nodes.push_back(std::move(node));
      } else {
        mend(model, op, graph, std::move(node), mends);
        changed = true;
      }
    }
    return changed;
  });
}

}  // namespace jaxport::target
