// SPDX-License-Identifier: Apache-2.0
#include "wire/kept.h"

#include <optional>

#include "support/dtype.h"
#include "wire/encoder.h"

namespace jaxport::wire {
namespace {

std::string_view name_of_tensor(Decoder tensor) {
  std::string_view name;
  while (tensor.next()) {
    if (tensor.field() == field::tensor::name) {
      name = tensor.bytes();
    } else {
      tensor.skip();
    }
  }
  return name;
}

// A field of a NodeProto: the attribute `name` with one value.
std::string attribute(std::string_view name, field::Number number, std::string_view value,
                      field::AttributeType type) {
  Encoder field;
  field.add_text(field::attribute::name, name);
  field.add_text(number, value);
  field.add_int(field::attribute::type, static_cast<std::int64_t>(type));
  return as_field(field::node::attribute, field.fields());
}

}  // namespace

std::string as_field(field::Number number, std::string_view content) {
  Encoder encoder;
  encoder.add_text(number, content);
  return encoder.fields();
}

std::string unknown_fields_of_graph(Decoder message) {
  namespace f = field::graph;
  std::string fields;
  while (message.next()) {
    switch (message.field()) {
      case f::node:
      case f::name:
      case f::initializer:
      case f::input:
      case f::output:
      case f::value_info:
      case f::sparse_initializer:
        message.skip();
        break;
      default:
        fields += message.raw();
    }
  }
  return fields;
}

bool is_held_attribute(const Decoder& node) {
  namespace f = field::attribute;
  Decoder fields = node;
  const Decoder whole = fields.message("attribute");
  for (Decoder part = whole; part.next();) {
    switch (part.field()) {
      case f::graphs:
        part.fail("attributes that are lists of graphs are not supported");
      case f::tensors:
      case f::type_proto:
      case f::type_protos:
      case f::ref_attr_name:
      case f::sparse_tensor:
      case f::sparse_tensors:
        return false;
      case f::t:
        if (!is_held_tensor(part.message("t"))) return false;
        break;
      default:
        part.skip();
    }
  }
  return true;
}

bool is_held_tensor(Decoder tensor) {
  std::optional<DType> dtype;
  while (tensor.next()) {
    if (tensor.field() == field::tensor::data_type) {
      dtype = dtype_from_onnx(static_cast<int>(tensor.integer()));
    } else {
      tensor.skip();
    }
  }
  return dtype && *dtype != DType::kString;
}

KeptTensor kept_tensor(Decoder tensor) {
  return {name_of_tensor(tensor),
          attribute("value", field::attribute::t, tensor.rest(), field::AttributeType::kTensor)};
}

KeptTensor kept_sparse_tensor(Decoder tensor) {
  KeptTensor kept{"", attribute("sparse_value", field::attribute::sparse_tensor, tensor.rest(),
                                field::AttributeType::kSparseTensor)};
  while (tensor.next()) {
    if (tensor.field() == field::sparse_tensor::values) {
      kept.name = name_of_tensor(tensor.message("values"));
    } else {
      tensor.skip();
    }
  }
  return kept;
}

}  // namespace jaxport::wire
