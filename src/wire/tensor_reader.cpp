// SPDX-License-Identifier: Apache-2.0
#include "wire/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <protozero/varint.hpp>
#include <string>

#include "wire/tensor_bytes.h"

namespace jaxport::wire {
namespace {

// The content of a repeated field of numbers. It is copied only when it comes in several parts.
class Packed {
 public:
  void append(std::string_view part) {
    if (first_.empty()) {
      first_ = part;
    } else {
      if (joined_.empty()) joined_ = first_;
      joined_ += part;
    }
  }
  bool is_joined() const { return !joined_.empty(); }
  std::string_view content() const { return is_joined() ? joined_ : first_; }

 private:
  std::string_view first_;
  std::string joined_;
};

struct TensorFields {
  std::string_view name;
  Shape shape;
  std::int64_t data_type = 0;
  std::optional<std::string_view> raw;
  field::Number typed_field = 0;  // which of float_data, int32_data, …; 0: none
  Packed typed;
  std::optional<ExternalReference> external;

  int sources() const { return raw.has_value() + (typed_field != 0) + external.has_value(); }
};

void read_external_entry(Decoder entry, ExternalReference& reference) {
  const auto [key, value] = read_entry(entry);
  if (key == "location") reference.location = value;
  if (key == "offset") reference.offset = value;
  if (key == "length") reference.length = value;
}

void read_typed_data(Decoder& message, TensorFields& fields) {
  const field::Number number = message.field();
  if (fields.typed_field != 0 && fields.typed_field != number) {
    message.fail("a tensor has data in two fields");
  }
  fields.typed_field = number;
  fields.typed.append(message.packed_bytes());
}

TensorFields read_fields(Decoder& message) {
  namespace f = field::tensor;
  TensorFields fields;
  ExternalReference reference;
  bool is_external = false;
  while (message.next()) {
    switch (message.field()) {
      case f::dims:
        message.append_to(fields.shape);
        break;
      case f::data_type:
        fields.data_type = message.integer();
        break;
      case f::name:
        fields.name = message.bytes();
        break;
      case f::raw_data:
        fields.raw = message.bytes();
        break;
      case f::float_data:
      case f::double_data:
      case f::int32_data:
      case f::int64_data:
      case f::uint64_data:
        read_typed_data(message, fields);
        break;
      case f::external_data:
        read_external_entry(message.message("external_data"), reference);
        break;
      case f::data_location:
        is_external = message.integer() == field::kExternal;
        break;
      case f::segment:
        message.fail("tensors in segments are not supported");
      default:
        message.skip();
    }
  }
  if (is_external) fields.external = reference;
  return fields;
}

// Which of the typed fields holds a dtype, as onnx.proto documents them.
field::Number data_field(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kC64:
      return field::tensor::float_data;
    case DType::kF64:
    case DType::kC128:
      return field::tensor::double_data;
    case DType::kI64:
      return field::tensor::int64_data;
    case DType::kU32:
    case DType::kU64:
      return field::tensor::uint64_data;
    default:
      return field::tensor::int32_data;
  }
}

bool is_varint_field(field::Number number) {
  return number != field::tensor::float_data && number != field::tensor::double_data;
}

// Each varint is cut to the `width` bytes of an element. Stops after `size` bytes.
std::string decoded_varints(std::string_view packed, std::size_t width, std::uint64_t size,
                            const Decoder& message) {
  std::string bytes;
  bytes.reserve(std::min<std::uint64_t>(size, packed.size() * width));
  const char *at = packed.data(), *end = packed.data() + packed.size();
  try {
    while (at != end && bytes.size() <= size) {
      const std::uint64_t value = protozero::decode_varint(&at, end);
      bytes.append(reinterpret_cast<const char*>(&value), width);
    }
  } catch (const protozero::exception&) {
    message.fail("the elements of a tensor are malformed");
  }
  return bytes;
}

DType supported_dtype(const TensorFields& fields, const Decoder& message) {
  const std::optional<DType> dtype = dtype_from_onnx(static_cast<int>(fields.data_type));
  if (dtype && *dtype != DType::kString) return *dtype;
  message.fail(fmt::format("tensor '{}' has element type {}, which jaxport does not support",
                           fields.name, fields.data_type),
               "jaxport reads tensors of numbers and bools, not strings");
}

// All sizes but the zeros are multiplied, so that no order of multiplication overflows.
std::int64_t checked_count(const Shape& shape, const Decoder& message) {
  constexpr std::int64_t kMost = std::int64_t{1} << 58;  // with 16 bytes each still an int64
  std::int64_t count = 1;
  bool is_empty = false;
  for (std::int64_t size : shape) {
    is_empty |= size == 0;
    const bool overflows = __builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count);
    if (size < 0 || overflows || count > kMost) {
      message.fail(fmt::format("a tensor of shape ({}) cannot exist", fmt::join(shape, ", ")));
    }
  }
  return is_empty ? 0 : count;
}

Tensor copied(DType dtype, Shape shape, std::string_view bytes) {
  const auto source = std::as_bytes(std::span(bytes));
  if (bit_width(dtype) == 4) return unpack(dtype, std::move(shape), source);
  MutableTensor result = allocate(dtype, std::move(shape));
  if (!bytes.empty()) std::memcpy(result.bytes, bytes.data(), bytes.size());
  return result.tensor;
}

Tensor shared(DType dtype, Shape shape, const SharedBytes& source, std::size_t largest_copy) {
  const auto* first = reinterpret_cast<const std::byte*>(source.bytes.data());
  const bool aligned = reinterpret_cast<std::uintptr_t>(first) % byte_width(dtype) == 0;
  const bool small = source.bytes.size() <= largest_copy;
  if (bit_width(dtype) == 4 || (small && !aligned)) {
    return copied(dtype, std::move(shape), source.bytes);
  }
  return {.dtype = dtype, .shape = std::move(shape), .data = {source.owner, first}};
}

void require_size(std::uint64_t actual, std::uint64_t expected, const TensorFields& fields,
                  const Decoder& message) {
  if (actual == expected) return;
  message.fail(fmt::format("tensor '{}' of shape ({}) has {} bytes instead of {}", fields.name,
                           fmt::join(fields.shape, ", "), actual, expected));
}

// Data of the typed fields as the bytes that raw_data would have. `decoded` holds them when they
// are not in the file as they are.
std::string_view typed_bytes(DType dtype, std::uint64_t size, const TensorFields& fields,
                             std::string& decoded, const Decoder& message) {
  if (fields.typed_field != data_field(dtype)) {
    message.fail(fmt::format("tensor '{}' has its data in a wrong field", fields.name));
  }
  const std::string_view content = fields.typed.content();
  if (!is_varint_field(fields.typed_field)) return content;
  decoded = decoded_varints(content, byte_width(dtype), size, message);
  return decoded;
}

}  // namespace

std::pair<std::string_view, std::string_view> read_entry(Decoder message) {
  std::string_view key, value;
  while (message.next()) {
    switch (message.field()) {
      case field::entry::key:
        key = message.bytes();
        break;
      case field::entry::value:
        value = message.bytes();
        break;
      default:
        message.skip();
    }
  }
  return {key, value};
}

NamedTensor TensorReader::read(Decoder message, std::size_t largest_copy) {
  TensorFields fields = read_fields(message);
  const DType dtype = supported_dtype(fields, message);
  const std::uint64_t size = file_bytes(dtype, checked_count(fields.shape, message));
  if (fields.sources() > 1) message.fail("a tensor has data in two places");
  std::string decoded;
  SharedBytes source{owner_, fields.raw.value_or("")};
  if (fields.external) source = external_.find(*fields.external, size, message);
  if (fields.typed_field != 0) {
    source.bytes = typed_bytes(dtype, size, fields, decoded, message);
  }
  require_size(source.bytes.size(), size, fields, message);
  const bool must_copy = !decoded.empty() || fields.typed.is_joined();
  return {fields.name, must_copy ? copied(dtype, std::move(fields.shape), source.bytes)
                                 : shared(dtype, std::move(fields.shape), source, largest_copy)};
}

}  // namespace jaxport::wire
