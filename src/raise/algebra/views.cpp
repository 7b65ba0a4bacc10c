// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/views.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "axis/evaluate/evaluate.h"
#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/translate/size_value.h"
#include "raise/engine/raise.h"

namespace jaxport::raise {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

namespace {

std::int64_t integer_exponent(const axis::Node& node) {
  const front::Attr* y = node.attr("y");
  const auto* value = y ? y->get_if<std::int64_t>() : nullptr;
  return value ? *value : 1;
}

bool is_literal(const axis::Node& node) { return node.kind == Kind::kConstant && node.out.empty(); }

bool is_whole(double value) { return std::trunc(value) == value; }

// A node that factors() looks into.
bool is_power(const axis::Node& node) {
  constexpr std::string_view kPowers[] = {"div", "integer_pow", "mul", "neg", "rsqrt", "sqrt"};
  if (node.name == "pow") return is_literal(*node.edges[1].node);
  return std::ranges::find(kPowers, node.name) != std::end(kPowers);
}

void collect_factors(Graph& graph, const Use& use, double exponent, int depth, Product& into) {
  if (auto value = graph.scalar_value(use)) {
    into.coefficient *= std::pow(*value, exponent);
    return;
  }
  const axis::Node& node = *use.node;
  if (depth == 0 || node.kind != Kind::kPointwise || !is_float(node.dtype) || !is_power(node)) {
    into.powers.push_back({use, exponent});
    return;
  }
  const std::vector<Use> operands = graph.children(use);
  const auto multiply_by = [&](const Use& operand, double power) {
    collect_factors(graph, operand, exponent * power, depth - 1, into);
  };
  // sqrt(a * b) is not sqrt(a) * sqrt(b) for negative a and b: roots stay closed, and `exponent` is
  // an integer on the way down. Nor is sqrt(a)^2 a.
  const auto multiply_by_root = [&](double power) {
    if (is_whole(exponent * power) && !is_whole(power)) {
      into.powers.push_back({use, exponent});
    } else {
      into.powers.push_back({operands[0], exponent * power});
    }
  };
  if (node.name == "mul" || node.name == "div") {
    multiply_by(operands[0], 1);
    multiply_by(operands[1], node.name == "mul" ? 1 : -1);
  } else if (node.name == "integer_pow") {
    multiply_by(operands[0], static_cast<double>(integer_exponent(node)));
  } else if (node.name == "neg") {
    into.coefficient *= std::pow(-1.0, exponent);
    multiply_by(operands[0], 1);
  } else if (node.name == "pow") {
    multiply_by_root(*graph.scalar_value(operands[1]));
  } else {
    multiply_by_root(node.name == "sqrt" ? 0.5 : -0.5);
  }
}

bool has_factor_within(const axis::Node& node, bool (*test)(const axis::Node&), int depth) {
  if (test(node)) return true;
  constexpr std::string_view kLookedThrough[] = {"div", "integer_pow", "mul", "neg"};
  if (depth == 0 || node.kind != Kind::kPointwise) return false;
  if (std::ranges::find(kLookedThrough, node.name) == std::end(kLookedThrough)) return false;
  return std::ranges::any_of(node.edges, [&](const axis::Edge& edge) {
    return has_factor_within(*edge.node, test, depth - 1);
  });
}

void collect_terms(Graph& graph, const Use& use, double coefficient, int depth, Sum& into) {
  if (auto value = graph.scalar_value(use)) {
    into.constant += coefficient * *value;
    return;
  }
  const axis::Node& node = *use.node;
  const auto add = [&](const Use& operand, double scale) {
    collect_terms(graph, operand, coefficient * scale, depth - 1, into);
  };
  if (depth > 0 && node.kind == Kind::kPointwise && is_float(node.dtype)) {
    if (node.name == "neg") return add(graph.child(use, 0), -1);
    if (node.name == "add" || node.name == "sub") {
      const std::vector<Use> operands = graph.children(use);
      add(operands[0], 1);
      return add(operands[1], node.name == "add" ? 1 : -1);
    }
    if (node.name == "mul" || node.name == "div") {
      const std::vector<Use> operands = graph.children(use);
      const auto lhs = graph.scalar_value(operands[0]), rhs = graph.scalar_value(operands[1]);
      if (rhs) return add(operands[0], node.name == "mul" ? *rhs : 1 / *rhs);
      if (lhs && node.name == "mul") return add(operands[1], *lhs);
    }
  }
  into.terms.push_back({coefficient, use});
}

std::optional<Reduction> minus_mean(Graph& graph, const Use& x, const Use& m) {
  const auto mean = mean_of(graph, m);
  axis::Binding binding;
  if (!mean || !graph.same(x, mean->of, binding)) return std::nullopt;
  return Reduction{x, resolve_all(mean->over, binding)};
}

Use value_of(const Power& power) {
  const double e = power.exponent;
  if (e == 1) return power.base;
  if (e == 0.5) return sqrt(power.base);
  if (e == -0.5) return rsqrt(power.base);
  if (is_whole(e)) return integer_pow(power.base, static_cast<std::int64_t>(e));
  return pow(power.base, e);
}

}  // namespace

Product factors(Graph& graph, const Use& use, int depth) {
  Product product;
  collect_factors(graph, use, 1, depth, product);
  return product;
}

namespace {

// Takes one power out of the product.
bool divide(Graph& graph, Product& product, const Power& by, axis::Binding& binding) {
  for (Power& power : product.powers) {
    axis::Binding bound = binding;
    const double left = power.exponent - by.exponent;
    const bool fits = std::signbit(power.exponent) == std::signbit(by.exponent) &&
                      std::abs(by.exponent) <= std::abs(power.exponent);
    if (!fits || !graph.same(power.base, by.base, bound)) continue;
    binding = std::move(bound);
    power.exponent = left;
    std::erase_if(product.powers, [](const Power& each) { return each.exponent == 0; });
    return true;
  }
  return false;
}

}  // namespace

std::optional<Product> quotient(Graph& graph, const Product& product, const Use& part,
                                axis::Binding& binding) {
  // The part stands deeper in the product than by itself, so less of it may have been taken apart.
  for (int depth = 0; depth <= kViewDepth; ++depth) {
    Product rest = product;
    const Product divisor = factors(graph, part, depth);
    axis::Binding bound = binding;
    const bool divides =
        divisor.coefficient != 0 && std::ranges::all_of(divisor.powers, [&](const Power& power) {
          return divide(graph, rest, power, bound);
        });
    if (!divides) continue;
    rest.coefficient /= divisor.coefficient;
    binding = std::move(bound);
    return rest;
  }
  return std::nullopt;
}

bool has_factor(const axis::Node& node, bool (*test)(const axis::Node&)) {
  return has_factor_within(node, test, kViewDepth);
}

Use multiply(double coefficient, Use first, const std::vector<Power>& rest) {
  Use result = std::move(first);
  for (const Power& power : rest) {
    result = power.exponent == -1 ? result / power.base : result * value_of(power);
  }
  return coefficient == 1 ? result : result * coefficient;
}

std::vector<Power> all_but(const std::vector<Power>& powers, std::size_t i, std::size_t j) {
  std::vector<Power> rest;
  for (std::size_t k = 0; k < powers.size(); ++k) {
    if (k != i && k != j) rest.push_back(powers[k]);
  }
  return rest;
}

Sum terms(Graph& graph, const Use& use) {
  Sum sum;
  collect_terms(graph, use, 1, kViewDepth, sum);
  return sum;
}

Reduction reduced(Graph& graph, const Use& use) {
  Reduction result{graph.child(use, 0), {}};
  const Labels kept = use.flat();
  for (Label label : result.of.flat()) {
    if (!axis::contains(kept, label)) result.over.push_back(label);
  }
  return result;
}

std::optional<double> mean_ratio(Graph& graph, const Product& product, const Power& sum,
                                 const Dim& count) {
  if (count.is_static()) {
    if (product.powers.size() != 1) return std::nullopt;
    return product.coefficient * std::pow(static_cast<double>(count.value()), sum.exponent);
  }
  for (const Power& power : product.powers) {
    if (&power == &sum) continue;
    if (power.exponent != -sum.exponent || product.powers.size() != 2) return std::nullopt;
    if (axis::size_value(graph, power.base) == std::optional(count)) return product.coefficient;
  }
  return std::nullopt;
}

std::optional<Reduction> mean_of(Graph& graph, const Use& use) {
  const Product product = factors(graph, use);
  const auto sum = std::ranges::find_if(
      product.powers, [](const Power& power) { return power.exponent == 1 && is_sum(power.base); });
  if (sum == product.powers.end()) return std::nullopt;
  Reduction reduction = reduced(graph, sum->base);
  const auto ratio = mean_ratio(graph, product, *sum, graph.size_of(reduction.over));
  if (!ratio || !near(*ratio, 1, use.node->dtype)) return std::nullopt;
  return reduction;
}

std::optional<Reduction> centred(Graph& graph, const Use& use) {
  if (is_pointwise(use, "sub")) return minus_mean(graph, graph.child(use, 0), graph.child(use, 1));
  if (!is_pointwise(use, "add")) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {  // x + (-mean), as gradients write it
    const Use negated = graph.child(use, i);
    if (!is_pointwise(negated, "neg")) continue;
    return minus_mean(graph, graph.child(use, 1 - i), graph.child(negated, 0));
  }
  return std::nullopt;
}

bool is_pointwise(const Use& use, std::string_view name) {
  return use.node->is(Kind::kPointwise, name);
}

bool is_zero(const Graph& graph, const Use& use) { return graph.scalar_value(use) == 0; }

bool is_sum(const Use& use) { return use.node->is(Kind::kReduce, "reduce_sum"); }

Use squared(Graph& graph, const Use& use) {
  if (is_pointwise(use, "integer_pow") && integer_exponent(*use.node) == 2) {
    return graph.child(use, 0);
  }
  return {};
}

Use without_float_converts(Graph& graph, Use use) {
  DType narrowest = use.node->dtype;
  return without_float_converts(graph, std::move(use), narrowest);
}

Use without_float_converts(Graph& graph, Use use, DType& narrowest) {
  narrowest = narrower(narrowest, use.node->dtype);
  while (is_pointwise(use, "convert_element_type") && is_float(use.node->dtype)) {
    Use operand = graph.child(use, 0);
    if (!is_float(operand.node->dtype)) break;
    use = std::move(operand);
    narrowest = narrower(narrowest, use.node->dtype);
  }
  return use;
}

Use converted_bool(Graph& graph, const Use& use) {
  if (!is_pointwise(use, "convert_element_type")) return {};
  Use source = graph.child(use, 0);
  return source.node->dtype == DType::kBool ? source : Use{};
}

DType sum_type(DType dtype) {
  return mantissa_bits(dtype) < mantissa_bits(DType::kF32) ? DType::kF32 : dtype;
}

DType narrower(DType a, DType b) { return mantissa_bits(b) < mantissa_bits(a) ? b : a; }

double as_written(double value, DType dtype) {
  if (dtype != DType::kF32) return value;
  std::array<char, 32> text;
  const auto printed =
      std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value));
  double result = value;
  std::from_chars(text.data(), printed.ptr, result);
  return result;
}

bool near(double a, double b, DType dtype) {
  const double tolerance = std::ldexp(1.0, 1 - mantissa_bits(dtype));
  // Nothing is near infinity.
  const double distance = std::abs(a - b);
  return std::isfinite(distance) && distance <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool is_closed(const axis::Node& root) {
  constexpr std::size_t kMostNodes = 96;
  std::unordered_set<const axis::Node*> unsorted_seen{&root};
  std::vector<const axis::Node*> pending{&root};
  while (!pending.empty()) {
    const axis::Node& node = *pending.back();
    pending.pop_back();
    const bool is_static = std::ranges::all_of(node.sizes, &Dim::is_static);
    const bool is_leaf = node.kind == axis::Kind::kConstant || node.kind == axis::Kind::kIota;
    const bool is_open = node.kind == axis::Kind::kPrim || (node.edges.empty() && !is_leaf);
    if (!is_static || is_open) return false;
    for (const axis::Edge& edge : node.edges) {
      if (unsorted_seen.insert(edge.node).second) pending.push_back(edge.node);
    }
    if (unsorted_seen.size() > kMostNodes) return false;
  }
  return true;
}

Tensor evaluated(Graph& graph, const Use& use, const Labels& order) {
  axis::Program program;
  // The graph outlives the program.
  program.graph = std::shared_ptr<Graph>(&graph, [](Graph*) {});
  program.outputs = {{use, axis::axis_each(order)}};
  front::Type type{use.node->dtype, {}};
  for (Label label : order) type.shape.push_back(graph.size(label));
  program.output_types = {std::move(type)};
  return axis::evaluate_constants(program, expand)[0];
}

bool is_subset(const Labels& some, const Labels& all) {
  return std::ranges::all_of(some, [&](Label label) { return axis::contains(all, label); });
}

bool same_set(const Labels& a, const Labels& b) { return is_subset(a, b) && is_subset(b, a); }

Labels resolve_all(const Labels& labels, const axis::Binding& binding) {
  Labels result;
  for (Label label : labels) result.push_back(axis::resolve(label, binding));
  return result;
}

}  // namespace jaxport::raise
