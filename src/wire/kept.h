// SPDX-License-Identifier: Apache-2.0
// What onnx::Model cannot hold, as fields of protobuf (struct Kept in wire.h).
#pragma once

#include <string>
#include <string_view>

#include "wire/decoder.h"

namespace jaxport::wire {

// One field with its tag and length.
std::string as_field(field::Number number, std::string_view content);

// Fields of a GraphProto that onnx::Graph does not have.
std::string unknown_fields_of_graph(Decoder message);

// Whether onnx::Attribute can hold the field at hand, an AttributeProto. Fails for attributes that
// are lists of graphs: what these use of the values around them would not be seen.
bool is_held_attribute(const Decoder& node);
// The same of a TensorProto: strings and types that we do not know cannot be held.
bool is_held_tensor(Decoder tensor);

// An initializer, and the attribute of the Constant that has the same value.
struct KeptTensor {
  std::string_view name;
  std::string attribute;
};
KeptTensor kept_tensor(Decoder tensor);
KeptTensor kept_sparse_tensor(Decoder tensor);

}  // namespace jaxport::wire
