// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: results have the types of their subgraphs' outputs.
#include <fmt/format.h>

#include <algorithm>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

// The type both have; the shape is unknown where they differ.
void set_common(Inference& n, std::size_t result, const TensorType* a, const TensorType* b) {
  if (a == nullptr) return;
  const bool is_same = b != nullptr && *a == *b;
  n.set_type(result, is_same ? *a : TensorType{a->dtype, std::nullopt});
}

void if_(Inference& n) {
  const Graph *taken = n.attr_graph("then_branch"), *other = n.attr_graph("else_branch");
  if (taken == nullptr || other == nullptr) return;
  const std::size_t count = n.output_count();
  if (taken->outputs.size() != count || other->outputs.size() != count) {
    n.fail("the branches do not have one output for each result");
  }
  for (std::size_t i = 0; i < count; ++i) {
    set_common(n, i, n.type_of(taken->outputs[i]), n.type_of(other->outputs[i]));
  }
}

// Body: (iteration, condition, carried...) -> (condition, carried..., collected...).
void loop(Inference& n) {
  const Graph* body = n.attr_graph("body");
  if (body == nullptr) return;
  const std::size_t carried = n.input_count() < 2 ? 0 : n.input_count() - 2;
  if (body->outputs.size() != n.output_count() + 1 || body->inputs.size() != carried + 2 ||
      n.output_count() < carried) {
    n.fail("the body does not fit the inputs and results");
  }
  for (std::size_t i = 0; i < n.output_count(); ++i) {
    const TensorType* out = n.type_of(body->outputs[i + 1]);
    if (i < carried) set_common(n, i, out, n.type_of(body->inputs[i + 2]));
    // How often the body runs is not known here, so neither is the first axis of what it collects.
    else if (out != nullptr)
      n.set_dtype(i, out->dtype);
  }
}

Ints scan_axes(const Inference& n, std::string_view name, std::size_t count) {
  Ints axes = n.attr_ints(name).value_or(Ints(count, 0));
  if (axes.size() != count) n.fail(fmt::format("{} does not have {} entries", name, count));
  return axes;
}

// The length that is scanned over, from the first scanned input whose shape is known.
std::optional<Dim> scan_length(const Inference& n, std::size_t states) {
  const Ints axes = scan_axes(n, "scan_input_axes", n.input_count() - states);
  for (std::size_t i = states; i < n.input_count(); ++i) {
    const Dims* in = n.shape(i);
    if (in == nullptr) continue;
    return (*in)[n.from_front(axes[i - states], in->size())];
  }
  return std::nullopt;
}

// Body: (states..., slices...) -> (states..., slices...).
void scan(Inference& n) {
  const Graph* body = n.attr_graph("body");
  const auto scanned = static_cast<std::size_t>(n.attr("num_scan_inputs", 0));
  if (body == nullptr || scanned > n.input_count()) return;
  const std::size_t states = n.input_count() - scanned;
  if (body->outputs.size() != n.output_count() || body->inputs.size() != n.input_count() ||
      n.output_count() < states) {
    n.fail("the body does not fit the inputs and results");
  }
  const Ints axes = scan_axes(n, "scan_output_axes", n.output_count() - states);
  const std::optional<Dim> length = scan_length(n, states);
  for (std::size_t i = 0; i < n.output_count(); ++i) {
    const TensorType* out = n.type_of(body->outputs[i]);
    if (out == nullptr) continue;
    n.set_dtype(i, out->dtype);
    if (i < states) {
      set_common(n, i, out, n.type_of(body->inputs[i]));
    } else if (out->shape && length) {
      Dims stacked = *out->shape;
      const std::size_t at = n.from_front(axes[i - states], stacked.size() + 1);
      stacked.insert(stacked.begin() + static_cast<std::ptrdiff_t>(at), *length);
      n.set(i, std::move(stacked));
    }
  }
}

constexpr InferenceRule kInferControlRules[] = {{"If", if_}, {"Loop", loop}, {"Scan", scan}};
static_assert(std::ranges::is_sorted(kInferControlRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> control_rules() { return kInferControlRules; }

}  // namespace jaxport::onnx
