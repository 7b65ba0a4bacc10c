// SPDX-License-Identifier: Apache-2.0
#include "lower/emitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "front/text.h"
#include "jaxport/error.h"
#include "lower/resize.h"

namespace jaxport::lower {

using axis::Kind;
using axis::Label;
using axis::Labels;

namespace {

// Elements above which a constant stays a view that is streamed while the file is written.
constexpr std::int64_t kLargestInline = 1024;

Dim size_of(const Labels& labels, const Dims& sizes) {
  Dim size = 1;
  for (Label label : labels) size = size * sizes[static_cast<std::size_t>(label)];
  return size;
}

bool is_static(const Arrangement& arrangement, const Dims& sizes) {
  return std::ranges::all_of(axis::flatten(arrangement), [&](Label label) {
    return sizes[static_cast<std::size_t>(label)].is_static();
  });
}

Dims shape_of(const Arrangement& arrangement, const Dims& sizes) {
  Dims shape;
  for (const Labels& labels : arrangement) shape.push_back(size_of(labels, sizes));
  return shape;
}

std::string output_name(const axis::Program& program, std::size_t i) {
  if (i < program.output_names.size()) return program.output_names[i];
  return program.outputs.size() == 1 ? "output" : fmt::format("output_{}", i);
}

std::size_t leading_units(const auto& dims) {
  std::size_t count = 0;
  while (count < dims.size() && dims[count].empty()) ++count;
  return count;
}

}  // namespace

NoConversion::NoConversion(const axis::Node& value)
    : Error("BUG",
            fmt::format("'{}' has no conversion to the layout that its user needs", value.name)) {}

Emitter::Emitter(const Plan& plan, const Choice& choice, onnx::Builder& builder,
                 ShapeValues& shapes)
    : plan_(plan),
      facts_(plan.facts),
      choice_(choice),
      op_(builder),
      shapes_(shapes),
      variants_(facts_.order().size()) {}

void Emitter::run() {
  const axis::Program& program = facts_.program;
  Values arguments;
  for (const axis::Input& input : program.inputs) {
    arguments.push_back(op_.input(input.name, {input.type.dtype, input.type.shape}));
    shapes_.add_input(arguments.back(), input.type.shape);
  }
  const Values results = run(arguments);
  for (std::size_t i = 0; i < results.size(); ++i) op_.output(results[i], output_name(program, i));
}

Values Emitter::run(const Values& arguments) {
  define_inputs(arguments);
  for (const Node* node : facts_.order()) {
    if (facts_.is_constant(node)) continue;
    try {
      if (node->kind != Kind::kInput) emit(*node);
      make_ready(*node);
    } catch (Error& error) {
      if (error.source().empty())
        error = front::located(std::move(error), facts_.program.location(node->location));
      throw;
    }
  }
  current_ = nullptr;
  Values results;
  for (std::size_t i = 0; i < facts_.program.outputs.size(); ++i) results.push_back(output(i));
  return results;
}

void Emitter::define_inputs(const Values& arguments) {
  for (const Node* node : facts_.order()) {
    if (node->kind != Kind::kInput) continue;
    const auto index = static_cast<std::size_t>(node->get<std::int64_t>("index"));
    Arrangement arrangement;
    std::size_t axis = 0;
    for (const Dim& size : facts_.program.inputs[index].type.shape) {
      arrangement.push_back(size.is_one() ? Labels{} : node->out[axis++]);
    }
    define(*node, arguments[index], arrangement);
  }
}

void Emitter::make_ready(const Node& node) {
  for (const Choice::Ready& ready : choice_.ready) {
    if (ready.value->id != node.id) continue;
    Conversion way = cheapest(&node, ready.layout);
    if (!way.steps.empty()) converted(&node, std::move(way));
  }
}

void Emitter::emit(const Node& node) {
  enter(node);
  current_ = &node;
  switch (node.kind) {
    case Kind::kPointwise:
      return emit_pointwise(node);
    case Kind::kReduce:
      return emit_reduce(node);
    case Kind::kContract:
      return emit_contract(node);
    case Kind::kIota:
      return emit_iota(node);
    case Kind::kPick:
      return emit_pick(node);
    case Kind::kSlice:
      return emit_slice(node);
    case Kind::kStack:
      return emit_stack(node);
    case Kind::kConcat:
      return emit_concat(node);
    case Kind::kRelayout:
      return emit_relayout(node);
    case Kind::kPrim:
      return emit_prim(node);
    case Kind::kMacro:
      if (node.name == "softmax") return emit_softmax(node, "Softmax");
      if (node.name == "log_softmax") return emit_softmax(node, "LogSoftmax");
      if (node.name == "norm") return emit_norm(node);
      if (node.name == "eye") return emit_eye(node);
      if (node.name == "attention") return emit_attention(node);
      if (node.name == "resize") return emit_resize(node);
      if (node.name == "rope" || node.name == "partial_rope") return emit_rope(node);
      break;
    default:
      break;
  }
  throw Error("BUG", fmt::format("no emission for axis node '{}'", node.name));
}

Value Emitter::output(std::size_t i) {
  const Facts::Output output = facts_.output(i);
  return bring_full(output.edge, output.sizes, output.dims);
}

void Emitter::define(const Node& node, Value value, const Arrangement& arrangement) {
  const auto pieces = label_pieces(node.out, node.sizes);
  variants(&node) = {{value, to_layout(arrangement, pieces)}};
}

std::vector<Arrangement> Emitter::arrangements(const Edge& edge, const Dims& sizes) const {
  std::vector<Arrangement> result;
  for (const Variant& variant : variants(edge.node)) {
    Arrangement seen = to_arrangement(variant.layout, edge.axes, sizes);
    if (std::ranges::find(result, seen) == result.end()) result.push_back(std::move(seen));
  }
  return result;
}

Emitter::Conversion Emitter::cheapest(const Node* node, const Layout& to) const {
  Conversion best{std::numeric_limits<double>::infinity(), {}, 0};
  const auto& candidates = variants(node);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto steps = conversion(candidates[i].layout, to);
    if (!steps) continue;
    if (double price = price_of(*steps); price < best.price) best = {price, std::move(*steps), i};
  }
  return best;
}

Emitter::Conversion Emitter::cheapest(const Edge& edge, const Dims& sizes,
                                      const Arrangement& to) const {
  return cheapest(edge.node, to_layout(to, label_pieces(edge.axes, sizes)));
}

Value Emitter::converted(const Node* node, Conversion way) {
  Value value = variants(node)[way.variant].value;
  for (Step& step : way.steps) {
    value = step.perm.empty() ? shapes_.reshape(value, sizes_of(step.after))
                              : op_.Transpose(value, onnx::Args{{"perm", step.perm}});
    variants(node).push_back({value, std::move(step.after)});
  }
  return value;
}

double Emitter::price(const Edge& edge, const Dims& sizes, const Arrangement& to) const {
  return is_constant(edge) ? 0 : cheapest(edge, sizes, to).price;
}

std::pair<double, Arrangement> Emitter::broadcastable(const Edge& edge, const Dims& sizes,
                                                      const Arrangement& to) const {
  const std::size_t asked = leading_units(to);
  const Arrangement core(to.begin() + static_cast<std::ptrdiff_t>(asked), to.end());
  if (is_constant(edge)) return {0, core};
  std::vector<std::size_t> tries{asked, 0};  // at equal price the units that the target has
  for (const Variant& variant : variants(edge.node)) tries.push_back(leading_units(variant.layout));
  std::pair<double, Arrangement> best{std::numeric_limits<double>::infinity(), {}};
  for (std::size_t units : tries) {
    Arrangement candidate(units);
    candidate.insert(candidate.end(), core.begin(), core.end());
    const double cost = price(edge, sizes, candidate);
    if (cost < best.first) best = {cost, std::move(candidate)};
  }
  return best;
}

Value Emitter::bring(const Edge& edge, const Dims& sizes, const Arrangement& to) {
  if (is_constant(edge)) return constant(edge, sizes, to, false);
  Conversion way = cheapest(edge, sizes, to);
  if (way.price == std::numeric_limits<double>::infinity()) {
    throw NoConversion(*edge.node);
  }
  if (!way.steps.empty()) {
    paid_.push_back(
        {edge.node, current_, variants(edge.node)[way.variant].layout, way.steps.back().after});
  }
  return converted(edge.node, std::move(way));
}

Value Emitter::bring_full(const Edge& edge, const Dims& sizes, const Arrangement& to) {
  if (is_constant(edge) && is_static(to, sizes)) return constant(edge, sizes, to, true);
  const LabelSet mine(sizes.size(), edge.axes);
  if (const auto repeats = repeats_of(to, mine, sizes); repeats && is_resizable(edge)) {
    return repeated(edge, sizes, to, *repeats);
  }
  Arrangement before, after;  // Expand turns the unit dims of `before` into the missing labels
  bool missing = false;
  for (const Labels& labels : to) {
    Labels run;
    auto flush = [&] {
      if (!run.empty()) before.push_back(run), after.push_back(run);
      run.clear();
    };
    for (Label label : labels) {
      if (mine.has(label)) {
        run.push_back(label);
      } else {
        flush();
        before.emplace_back();
        after.push_back({label});
        missing = true;
      }
    }
    flush();
    if (labels.empty()) before.emplace_back(), after.emplace_back();
  }
  if (!missing) return bring(edge, sizes, to);
  Value value = shapes_.expand(bring(edge, sizes, before), shape_of(after, sizes));
  return shapes_.reshape(value, shape_of(to, sizes));
}

// What is computed from a weight has the name of the weight: of the operand with the most axes.
std::string Emitter::weight_name(const Node& node) {
  const Node* named = &node;
  while (named->path.empty() && !named->edges.empty()) {
    const auto axes = [](const Edge& edge) { return edge.axes.size(); };
    named = std::ranges::max_element(named->edges, {}, axes)->node;
  }
  if (named->path.empty()) return "";
  std::string name = named->path;
  for (int i = 1; !weight_names_.insert(name).second; ++i)
    name = fmt::format("{}_{}", named->path, i);
  return name;
}

Value Emitter::constant(const Edge& edge, const Dims& sizes, const Arrangement& to, bool full) {
  const ConstantView& source = facts_.constant(edge.node);
  const auto pieces = label_pieces(edge.axes, sizes);
  const LabelSet mine(sizes.size(), edge.axes);
  StridedView view{source.base, source.offset, {}, {}};
  Shape shape;
  for (const Labels& labels : to) {
    std::int64_t extent = 1;
    const bool repeat =
        full || mine.has_any(labels);  // a merged dim that the constant knows in part
    for (Label label : labels) {
      const Piece& piece = pieces[static_cast<std::size_t>(label)];
      if (piece.axis < 0 && !repeat) continue;
      view.sizes.push_back(sizes[static_cast<std::size_t>(label)].value());
      view.strides.push_back(piece.axis < 0 ? 0
                                            : source.strides[static_cast<std::size_t>(piece.axis)] *
                                                  piece.stride.value());
      extent *= view.sizes.back();
    }
    shape.push_back(extent);
  }
  const std::string key =
      fmt::format("{} {} {} {}", facts_.index(edge.node), fmt::join(view.sizes, ","),
                  fmt::join(view.strides, ","), fmt::join(shape, ","));
  auto [found, fresh] = constants_.try_emplace(key);
  if (!fresh) return found->second;
  if (view.size() <= kLargestInline) {
    Tensor dense = materialise(view);
    dense.shape = shape;
    found->second = op_.constant(std::move(dense), weight_name(*edge.node));
  } else {
    found->second = op_.weight(std::move(view), std::move(shape), weight_name(*edge.node));
  }
  return found->second;
}

std::optional<Arrangement> Emitter::wanted(const Node& node, const LabelSet& labels) const {
  const auto& wish = hint(node);
  if (!wish) return std::nullopt;
  Arrangement result;
  for (const Labels& dim : wish->dims) result.push_back(labels.keep(dim));
  return result;
}

std::optional<Labels> Emitter::wanted_order(const Node& node, const LabelSet& labels) const {
  auto arrangement = wanted(node, labels);
  if (!arrangement) return std::nullopt;
  return axis::flatten(*arrangement);
}

double Emitter::regret(const Node& node, const Arrangement& result) const {
  const auto& wish = hint(node);
  if (!wish) return 0;
  const LabelSet labels(node.sizes.size(), node.out);
  Arrangement have, want;
  auto without_units = [&](const Arrangement& from, Arrangement& to) {
    for (const Labels& dim : from) {
      if (Labels kept = labels.keep(dim); !kept.empty()) to.push_back(std::move(kept));
    }
  };
  without_units(result, have);
  without_units(*wanted(node, labels), want);
  if (wish->order_only) {
    return axis::flatten(have) == axis::flatten(want) ? 0 : kTransposePrice + 0.5;
  }
  // Each label is an axis of its own here.
  axis::Pattern each;
  for (Label l = 0; l < static_cast<Label>(node.sizes.size()); ++l) each.push_back({l});
  const auto pieces = label_pieces(each, node.sizes);
  auto steps = conversion(to_layout(have, pieces), to_layout(want, pieces));
  const double cost = steps ? price_of(*steps) : kTransposePrice;
  return cost > 0 ? cost + 0.5 : 0;
}

}  // namespace jaxport::lower
