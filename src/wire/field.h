// SPDX-License-Identifier: Apache-2.0
// Field numbers of onnx.proto, named as there. Only the fields that jaxport reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jaxport::wire::field {

using Number = std::uint32_t;

// Graphs in graphs: readers of protobuf follow 100 messages, one of these takes three, and the
// types of its values five more.
constexpr std::size_t kDeepest = 32;

namespace model {
constexpr Number ir_version = 1, producer_name = 2, producer_version = 3, domain = 4,
                 model_version = 5, doc_string = 6, graph = 7, opset_import = 8,
                 metadata_props = 14, training_info = 20, functions = 25;
}
namespace function {
constexpr Number name = 1, input = 4, output = 5, attribute = 6, node = 7, opset_import = 9,
                 domain = 10, attribute_proto = 11, value_info = 12;
}
namespace opset {
constexpr Number domain = 1, version = 2;
}
namespace entry {  // StringStringEntryProto
constexpr Number key = 1, value = 2;
}
namespace graph {
constexpr Number node = 1, name = 2, initializer = 5, doc_string = 10, input = 11, output = 12,
                 value_info = 13, quantization_annotation = 14, sparse_initializer = 15,
                 metadata_props = 16;
}
namespace node {
constexpr Number input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7,
                 overload = 8, metadata_props = 9;
}
namespace attribute {
constexpr Number name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9,
                 tensors = 10, graphs = 11, type_proto = 14, type_protos = 15, type = 20,
                 ref_attr_name = 21, sparse_tensor = 22, sparse_tensors = 23;
}
namespace value_info {
constexpr Number name = 1, type = 2;
}
namespace type {
constexpr Number tensor_type = 1;
}
namespace tensor_type {
constexpr Number elem_type = 1, shape = 2;
}
namespace shape {
constexpr Number dim = 1;
}
namespace dimension {
constexpr Number dim_value = 1, dim_param = 2;
}
namespace sparse_tensor {
constexpr Number values = 1;
}
namespace tensor {
constexpr Number dims = 1, data_type = 2, segment = 3, float_data = 4, int32_data = 5,
                 int64_data = 7, name = 8, raw_data = 9, double_data = 10, uint64_data = 11,
                 external_data = 13, data_location = 14;
}

// AttributeProto.AttributeType
enum class AttributeType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kSparseTensor = 11,
};
constexpr std::int64_t kExternal = 1;  // TensorProto.DataLocation

}  // namespace jaxport::wire::field
