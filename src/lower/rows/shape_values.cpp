// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/shape_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>

#include "jaxport/error.h"
#include "onnx/expr.h"

namespace jaxport::lower {

using onnx::Value;
using onnx::Values;

void ShapeValues::add_input(Value input, const Dims& shape) {
  inputs_.emplace_back(input, shape);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].is_static()) {
      sources_.push_back({input, static_cast<std::int64_t>(axis), shape[axis]});
    }
  }
}

Value ShapeValues::read(const Source& source) {
  return op_.Shape(source.input, onnx::Args{{"start", source.axis}, {"end", source.axis + 1}});
}

Value ShapeValues::dim(const Dim& dim) {
  if (dim.is_static()) return op_.ints({dim.value()});
  if (outer_ && !is_told_inside(dim)) return {&op_, outer_->dim(dim).id()};
  auto found = std::ranges::find(known_, dim, &std::pair<Dim, Value>::first);
  if (found != known_.end()) return found->second;
  auto source = std::ranges::find(sources_, dim, &Source::size);
  Value value;
  if (source != sources_.end()) {
    value = read(*source);
  } else {
    for (const DimTerm& summand : dim.expr()->terms) {
      value = value ? value + term(summand) : term(summand);
    }
  }
  known_.emplace_back(dim, value);
  return value;
}

Value ShapeValues::term(const DimTerm& term) {
  Value value;
  for (const DimFactor& factor : term.factors) {
    const Value base = atom(*factor.atom);
    for (int i = 0; i < factor.power; ++i) value = value ? value * base : base;
  }
  if (!value) return op_.ints({term.coefficient});
  return term.coefficient == 1 ? value : value * op_.ints({term.coefficient});
}

Value ShapeValues::atom(const DimAtom& atom) {
  if (atom.op == DimAtom::Op::kSymbol) return symbol(atom.symbol);
  const Value lhs = dim(atom.lhs), rhs = dim(atom.rhs);
  switch (atom.op) {
    case DimAtom::Op::kMax:
      return max(lhs, rhs);
    case DimAtom::Op::kMin:
      return min(lhs, rhs);
    case DimAtom::Op::kMod:
      return lhs % rhs;
    default:
      break;
  }
  // ONNX Div truncates; floor differs for a negative numerator only.
  if (less_equal(Dim(0), atom.lhs) == Truth::kYes) return lhs / rhs;
  return (lhs - lhs % rhs) / rhs;
}

namespace {

std::vector<std::string> symbols_of(const DimFactor& factor) {
  const DimAtom& atom = *factor.atom;
  if (atom.op == DimAtom::Op::kSymbol) return {atom.symbol};
  std::vector<std::string> symbols;
  collect_symbols(atom.lhs, symbols);
  collect_symbols(atom.rhs, symbols);
  return symbols;
}

bool mentions(const DimTerm& term, const std::string& name) {
  return std::ranges::any_of(term.factors, [&](const DimFactor& factor) {
    const auto symbols = symbols_of(factor);
    return std::ranges::find(symbols, name) != symbols.end();
  });
}

// The term divided by the symbol; nullopt when it is not a multiple of its first power.
std::optional<DimTerm> divided(DimTerm term, const std::string& name) {
  const auto removed = std::erase_if(term.factors, [&](const DimFactor& factor) {
    return factor.atom->op == DimAtom::Op::kSymbol && factor.atom->symbol == name &&
           factor.power == 1;
  });
  return removed == 1 && !mentions(term, name) ? std::optional(std::move(term)) : std::nullopt;
}

// One summand is a multiple of the symbol, and no other one depends on it.
bool is_linear_in(const Dim& size, const std::string& name) {
  std::size_t multiples = 0;
  for (const DimTerm& term : size.expr()->terms) {
    if (!mentions(term, name)) continue;
    if (!divided(term, name)) return false;
    ++multiples;
  }
  return multiples == 1;
}

}  // namespace

// A size in which all symbols but one are known gives that one, until nothing is left to learn.
void ShapeValues::find_solutions() {
  for (bool learns = true; learns;) {
    learns = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      std::vector<std::string> symbols;
      collect_symbols(sources_[i].size, symbols);
      std::erase_if(symbols, [&](const std::string& name) { return solutions_.contains(name); });
      if (symbols.size() != 1 || !is_linear_in(sources_[i].size, symbols[0])) continue;
      solutions_.emplace(symbols[0], i);
      learns = true;
    }
  }
}

bool ShapeValues::is_told_inside(const Dim& dim) {
  if (sources_.empty()) return false;
  if (solutions_.empty()) find_solutions();
  std::vector<std::string> symbols;
  collect_symbols(dim, symbols);
  return std::ranges::all_of(symbols, [&](const auto& name) { return solutions_.contains(name); });
}

Value ShapeValues::symbol(const std::string& name) {
  const auto plain =
      std::ranges::find(sources_, name, [](const Source& s) { return s.size.str(); });
  if (plain != sources_.end()) return read(*plain);
  if (solutions_.empty()) find_solutions();
  const auto found = solutions_.find(name);
  if (found != solutions_.end()) return solve(name, sources_[found->second]);
  throw Error("E021", fmt::format("the size '{}' cannot be computed from the inputs' shapes", name))
      .help("give one input a dimension that is just this name");
}

// size = factor * name + rest: name = (size - rest) / factor.
Value ShapeValues::solve(const std::string& name, const Source& source) {
  Value value = read(source);
  DimTerm factor{1, {}};
  for (const DimTerm& summand : source.size.expr()->terms) {
    if (mentions(summand, name)) {
      factor = *divided(summand, name);
    } else {
      value = value - term(summand);
    }
  }
  const bool is_one = factor.coefficient == 1 && factor.factors.empty();
  return is_one ? value : value / term(factor);
}

// An input with these dims side by side tells them all at once.
Value ShapeValues::read_run(const Dims& dims) {
  for (const auto& [input, shape] : inputs_) {
    const auto run = std::search(shape.begin(), shape.end(), dims.begin(), dims.end());
    if (run == shape.end()) continue;
    const std::int64_t start = run - shape.begin();
    return op_.Shape(input, onnx::Args{{"start", start}, {"end", start + std::ssize(dims)}});
  }
  return {};
}

// An input of this many elements tells their number at once.
Value ShapeValues::read_count(const Dim& count) {
  for (const auto& [input, shape] : inputs_) {
    const Dim elements = std::accumulate(shape.begin(), shape.end(), Dim(1), std::multiplies<>());
    if (elements == count) return op_.Size(input);
  }
  return {};
}

Value ShapeValues::number(const Dim& size) {
  if (size.is_static()) return op_.constant(int_scalar(DType::kI64, size.value()));
  if (outer_ && !is_told_inside(size)) return {&op_, outer_->number(size).id()};
  if (const Value count = read_count(size)) return count;
  return op_.Squeeze(dim(size));
}

Value ShapeValues::shape(const Dims& dims) {
  const bool is_static = std::ranges::all_of(dims, &Dim::is_static);
  const auto is_told = [&](const Dim& dim) { return dim.is_static() || is_told_inside(dim); };
  if (outer_ && !is_static && !std::ranges::all_of(dims, is_told)) {
    return {&op_, outer_->shape(dims).id()};
  }
  if (dims.size() > 1 && !is_static) {
    if (const Value run = read_run(dims)) return run;
  }
  std::vector<std::int64_t> fixed;
  Values parts;
  auto flush = [&] {
    if (!fixed.empty()) parts.push_back(op_.ints(fixed));
    fixed.clear();
  };
  for (const Dim& size : dims) {
    if (size.is_static()) {
      fixed.push_back(size.value());
    } else {
      flush();
      parts.push_back(dim(size));
    }
  }
  if (parts.empty()) return op_.ints(fixed);
  flush();
  return parts.size() == 1 ? parts[0] : op_.call("Concat", parts, {{"axis", 0}});
}

std::optional<Value> ShapeValues::constant_target(const Dims& from, const Dims& to) {
  std::vector<std::int64_t> target;
  int unknown = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_zero()) return std::nullopt;  // it would read as "copy"
    if (to[i].is_static()) {
      target.push_back(to[i].value());
    } else if (i < from.size() && from[i] == to[i]) {
      target.push_back(0);
    } else {
      target.push_back(-1);
      ++unknown;
    }
  }
  return unknown <= 1 ? std::optional(op_.ints(target)) : std::nullopt;
}

namespace {

// Where `more` has unit dims that `fewer` lacks; nullopt when they differ otherwise.
std::optional<std::vector<std::int64_t>> extra_units(const Dims& more, const Dims& fewer) {
  std::vector<std::int64_t> units;
  std::size_t next = 0;
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (next < fewer.size() && more[i] == fewer[next]) {
      ++next;
    } else if (more[i].is_one()) {
      units.push_back(static_cast<std::int64_t>(i));
    } else {
      return std::nullopt;
    }
  }
  return next == fewer.size() ? std::optional(units) : std::nullopt;
}

bool has_several_symbols(const Dims& shape) {
  return std::ranges::count_if(shape, [](const Dim& size) { return !size.is_static(); }) > 1;
}

}  // namespace

Value ShapeValues::reshape(Value x, const Dims& to) {
  if (x.shape() == to) return x;
  // Where Reshape might need sizes computed, unit dims come and go without.
  if (has_several_symbols(to)) {
    if (const auto units = extra_units(x.shape(), to)) return op_.Squeeze(x, op_.ints(*units));
    if (const auto units = extra_units(to, x.shape())) return op_.Unsqueeze(x, op_.ints(*units));
  }
  if (const auto target = constant_target(x.shape(), to)) {
    return op_.call_with_shape("Reshape", {x, *target}, {}, to);
  }
  // A size that turns out to be 0 must not read as "copy".
  return op_.call_with_shape("Reshape", {x, shape(to)}, {{"allowzero", 1}}, to);
}

Value ShapeValues::expand(Value x, const Dims& to) {
  if (x.shape() == to) return x;
  return op_.call_with_shape("Expand", {x, shape(to)}, {}, to);
}

Value ShapeValues::range(const Dim& size) {
  const Value end = number(size);
  return op_.call_with_shape("Range", {op_.scalar(0, DType::kI64), end, op_.scalar(1, DType::kI64)},
                             {}, {size});
}

Value ShapeValues::positions(const Dim& batch, const Dim& time) {
  const auto found =
      std::ranges::find(positions_, Dims{batch, time}, &std::pair<Dims, Value>::first);
  if (found != positions_.end()) return found->second;
  Tensor counted;
  if (time.is_static()) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(time.value()));
    std::iota(numbers.begin(), numbers.end(), 0);
    counted = int64s(numbers);
  }
  Value value;
  if (batch.is_static() && time.is_static()) {
    const Shape shape{batch.value(), time.value()};
    value = op_.weight({counted, 0, shape, {0, 1}}, shape, "");
  } else {
    value = expand(time.is_static() ? op_.constant(counted) : range(time), {batch, time});
  }
  positions_.emplace_back(Dims{batch, time}, value);
  return value;
}

}  // namespace jaxport::lower
