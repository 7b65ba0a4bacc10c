// SPDX-License-Identifier: Apache-2.0
#include "onnx/ir.h"

#include <algorithm>

namespace jaxport::onnx {
namespace {

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const Tensor& a, const Tensor& b) { return same_bytes(a, b); }

}  // namespace

bool operator==(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&](const auto& value) {
        return same(value, std::get<std::decay_t<decltype(value)>>(b.value));
      },
      a.value);
}

const Attribute* Node::attr(std::string_view wanted) const {
  const auto found = std::ranges::find(attrs, wanted, &Attribute::name);
  return found == attrs.end() ? nullptr : &*found;
}

std::int64_t Model::opset(std::string_view wanted) const {
  const auto found = std::ranges::find(opsets, wanted, &OpsetImport::domain);
  return found == opsets.end() ? 0 : found->version;
}

}  // namespace jaxport::onnx
