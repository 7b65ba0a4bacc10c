// SPDX-License-Identifier: Apache-2.0
#include "onnx/equal.h"

#include <algorithm>
#include <bit>

#include "support/hash.h"

namespace jaxport::onnx {
namespace {

std::uint64_t hash_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t hash_of(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t hash_of(const std::string& value) { return hash_text(value); }
std::uint64_t hash_of(const Tensor& value) { return content_hash(value); }
// Graphs are compared by address, which must not decide an order; equality settles the rest.
std::uint64_t hash_of(const std::shared_ptr<Graph>&) { return 0; }
template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  std::uint64_t hash = values.size();
  for (const T& value : values) hash = mix(hash, hash_of(value));
  return hash;
}

bool is_random(std::string_view op) {
  return op.starts_with("RandomNormal") || op.starts_with("RandomUniform") || op == "Bernoulli" ||
         op == "Multinomial" || op == "Dropout";
}

}  // namespace

bool is_repeatable(const Node& node) {
  const auto is_graph = [](const Attribute& attr) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attr.value);
  };
  return node.domain.empty() && !is_random(node.op) && std::ranges::none_of(node.attrs, is_graph);
}

bool same_call(const Node& a, const Node& b) {
  return a.op == b.op && a.domain == b.domain && a.in == b.in && a.out.size() == b.out.size() &&
         a.attrs == b.attrs;
}

std::uint64_t hash_call(const Node& node) {
  std::uint64_t hash = hash_text(node.op, node.out.size());
  for (ValueId id : node.in) hash = mix(hash, id);
  for (const Attribute& attr : node.attrs) {
    hash = hash_text(attr.name, hash);
    hash = mix(hash, std::visit([](const auto& value) { return hash_of(value); }, attr.value));
  }
  return hash;
}

bool is_small(DType dtype, std::int64_t elements) {
  return elements <= kSmallElements || elements * byte_width(dtype) <= kSmallBytes;
}

bool names_agree(std::string_view a, std::string_view b) {
  return a.empty() || b.empty() || a == b;
}

}  // namespace jaxport::onnx
