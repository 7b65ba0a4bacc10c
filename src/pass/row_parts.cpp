// SPDX-License-Identifier: Apache-2.0
#include "pass/row_parts.h"

#include <algorithm>
#include <span>

#include "onnx/attributes.h"
#include "onnx/walk.h"
#include "pass/rewriter.h"

namespace jaxport::pass {

using onnx::Graph;
using onnx::Node;
using onnx::ValueId;

namespace {

// ONNX Runtime computes a sum and the norm behind it at once where nothing else reads the sum, but
// not of rows: transformers that end their blocks with norms keep their form.
constexpr std::int64_t kPriceOfSumBeforeNorm = 2;

bool is_one_of(const Node& node, std::span<const std::string_view> sorted_ops) {
  return node.domain.empty() && std::ranges::binary_search(sorted_ops, node.op);
}

// Each element of the result depends on the elements at its place, and on vectors along the last
// axis.
bool is_pointwise(const Node& node) {
  static constexpr std::string_view kOps[] = {
      "Abs",  "Add",     "Cast",        "Clip",      "Div",        "Elu",  "Erf",     "Exp",
      "Gelu", "Greater", "HardSigmoid", "HardSwish", "LeakyRelu",  "Less", "Log",     "Max",
      "Min",  "Mul",     "Neg",         "Pow",       "Reciprocal", "Relu", "Sigmoid", "Softplus",
      "Sqrt", "Sub",     "Swish",       "Tanh",      "Where"};
  static_assert(std::ranges::is_sorted(kOps));
  return is_one_of(node, kOps);
}

// merge_views makes one Reshape of these and of one behind them.
bool is_regrouping(const Node& node) {
  static constexpr std::string_view kOps[] = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"};
  return is_one_of(node, kOps);
}

}  // namespace

bool is_norm(const Node& node) {
  static constexpr std::string_view kOps[] = {"LayerNormalization", "RMSNormalization"};
  return is_one_of(node, kOps);
}

RowFacts::RowFacts(const onnx::Model& model)
    : model_(model), uses_(use_counts(model)), constant_(model.values.size(), nullptr) {
  onnx::for_each_graph(model.graph, [this](const Graph& graph) {
    for (const onnx::Initializer& one : graph.initializers) constant_[one.value] = &one;
  });
}

const Dims* RowFacts::shape(ValueId id) const {
  if (id == onnx::kAbsent) return nullptr;
  const auto& type = model_.values[id].type;
  return type && type->shape ? &*type->shape : nullptr;
}

bool RowFacts::is_tall(ValueId id) const {
  const Dims* dims = shape(id);
  return dims && dims->size() > 2 && dims->back().is_static() && !dims->back().is_zero() &&
         !constant_[id];
}

bool RowFacts::has_same_rows(ValueId a, ValueId b) const {
  if (!is_tall(a) || !is_tall(b) || rank(a) != rank(b)) return false;
  return std::equal(shape(a)->begin(), shape(a)->end() - 1, shape(b)->begin());
}

bool RowFacts::is_wide_float(ValueId id) const {
  const DType dtype = model_.values[id].type->dtype;
  return dtype == DType::kF32 || dtype == DType::kF64;
}

bool RowFacts::is_free_reshape(const Node& node) const {
  if (node.op != "Reshape" || !node.domain.empty()) return false;
  const onnx::Initializer* target = constant_[node.in[1]];
  if (!target) return false;
  const Tensor sizes = materialise(target->view);
  for (std::int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes.int_at(i) == 0) return false;  // it copies a dim
  }
  return true;
}

RowParts::RowParts(const RowFacts& known, const Graph& graph, std::size_t value_count)
    : known_(known),
      graph_(graph),
      in_part_(graph.nodes.size(), false),
      is_sum_(graph.nodes.size(), false),
      producer_(value_count, nullptr),
      inside_(value_count, 0),
      reshaped_(value_count, 0),
      above_(value_count, onnx::kAbsent) {
  if (!find_sums()) return;
  leave_out_ends();
  join();
  for (const Node& node : graph.nodes) weigh(node);
  for (auto& [id, part] : parts_) {
    if (symbols(part) > 1) part.price += 1 + std::ssize(part.shape_of_width);
  }
}

RowPart* RowParts::taken(const Node& node) {
  if (!in_part_[index(node)]) return nullptr;
  RowPart& part = parts_.at(root(node.out[0]));
  return part.is_taken() ? &part : nullptr;
}

std::size_t RowParts::sums() const {
  std::size_t all = 0;
  for (const auto& [id, part] : parts_) all += part.is_taken() ? part.sums : 0;
  return all;
}

std::ptrdiff_t RowParts::symbols(const RowPart& part) const {
  return std::ranges::count_if(*known_.shape(part.first),
                               [](const Dim& dim) { return !dim.is_static(); });
}

bool RowParts::is_row_wise(const Node& node) const {
  if (!node.domain.empty() || node.out.size() != 1 || node.in.empty()) return false;
  const auto is_row = [&](ValueId id) { return known_.has_same_rows(id, node.out[0]); };
  if (node.op == "MatMul") {
    return is_row(node.in[0]) && known_.shape(node.in[1]) && known_.rank(node.in[1]) == 2;
  }
  const auto fits = [&](ValueId id) {
    return id == onnx::kAbsent || is_row(id) || known_.is_vector(id);
  };
  if (!std::ranges::all_of(node.in, fits)) return false;
  if (is_norm(node)) return is_row(node.in[0]) && is_along_rows(node);
  return is_pointwise(node) && std::ranges::any_of(node.in, is_row);
}

bool RowParts::is_along_rows(const Node& norm) const {
  const std::int64_t at = int_attribute(norm, "axis", -1);
  return at == -1 || at + 1 == static_cast<std::int64_t>(known_.rank(norm.in[0]));
}

// As make_gemms takes them.
bool RowParts::is_product_for(const Node* product, ValueId bias) const {
  if (!product || product->op != "MatMul" || !in_part_[index(*product)]) return false;
  const ValueId result = product->out[0];
  return known_.uses(result) == 1 && known_.is_wide_float(result) && known_.is_vector(bias) &&
         known_.rank(bias) == 1 && known_.shape(bias)->back() == known_.shape(result)->back();
}

bool RowParts::find_sums() {
  bool any = false;
  for (const Node& node : graph_.nodes) {
    in_part_[index(node)] = is_row_wise(node);
    for (ValueId id : node.out) {
      if (id != onnx::kAbsent) producer_[id] = &node;
    }
    if (!in_part_[index(node)] || node.op != "Add") continue;
    for (std::size_t i : {0u, 1u}) {
      const Node* product = producer_[node.in[i]];
      if (!is_product_for(product, node.in[1 - i])) continue;
      is_sum_[index(node)] = is_sum_[index(*product)] = any = true;
    }
  }
  return any;
}

// A node at the end of a part makes nothing shorter, and several of them that read one value would
// have a border each.
void RowParts::leave_out_ends() {
  std::vector<bool> is_read(above_.size(), false);
  for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
    const Node& node = graph_.nodes[i];
    if (!in_part_[i]) continue;
    if (!is_sum_[i] && !is_read[node.out[0]] && shares_its_only_rows(node)) {
      in_part_[i] = false;
      continue;
    }
    for (ValueId id : node.in) {
      if (id != onnx::kAbsent) is_read[id] = true;
    }
  }
}

bool RowParts::shares_its_only_rows(const Node& node) const {
  const auto is_rows = [&](ValueId id) { return known_.is_tall(id); };
  return std::ranges::count_if(node.in, is_rows) == 1 &&
         known_.uses(*std::ranges::find_if(node.in, is_rows)) > 1;
}

void RowParts::join() {
  for (const Node& node : graph_.nodes) {
    if (known_.is_free_reshape(node)) ++reshaped_[node.in[0]];
    if (!in_part_[index(node)]) continue;
    for (ValueId id : node.in) {
      if (!known_.is_tall(id)) continue;
      ++inside_[id];
      const ValueId a = root(id), b = root(node.out[0]);
      if (a != b) above_[b] = a;
    }
  }
}

ValueId RowParts::root(ValueId id) {
  while (above_[id] != onnx::kAbsent) {
    if (above_[above_[id]] != onnx::kAbsent) above_[id] = above_[above_[id]];
    id = above_[id];
  }
  return id;
}

void RowParts::weigh(const Node& node) {
  if (is_norm(node) && is_lone_sum(node.in[0])) {
    parts_[root(node.in[0])].price += kPriceOfSumBeforeNorm;
  }
  if (!in_part_[index(node)]) return;
  RowPart& part = parts_[root(node.out[0])];
  if (is_sum_[index(node)] && node.op == "Add") ++part.sums;
  for (ValueId id : node.in) {
    const bool is_inside = known_.is_tall(id) && producer_[id] && in_part_[index(*producer_[id])];
    if (known_.is_tall(id) && !is_inside) enter(part, id);
  }
  if (const ValueId id = node.out[0]; leaves(id)) {
    part.shape_of_width.emplace(known_.shape(id)->back().value(), onnx::kAbsent);
    if (known_.uses(id) - inside_[id] > reshaped_[id]) ++part.price;
  }
}

void RowParts::enter(RowPart& part, ValueId id) {
  if (part.first == onnx::kAbsent) part.first = id;
  if (!entered_.insert(id).second) return;
  const bool is_merged = producer_[id] && is_regrouping(*producer_[id]) && !leaves(id);
  if (!is_merged) ++part.price;
}

bool RowParts::is_lone_sum(ValueId id) const {
  if (id == onnx::kAbsent || !producer_[id] || known_.uses(id) != 1) return false;
  const Node& sum = *producer_[id];
  return sum.op == "Add" && in_part_[index(sum)] &&
         std::ranges::all_of(sum.in, [&](ValueId in) { return known_.is_tall(in); });
}

}  // namespace jaxport::pass
