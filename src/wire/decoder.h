// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wire/field.h"

namespace jaxport::wire {

// The bytes that are read, for positions in error messages.
struct Source {
  std::string name;  // the file's, or "" for bytes in memory
  std::string_view bytes;
};

// One protobuf message, field by field. Every getter checks the wire type and the length first and
// throws Error E052 with the byte and the path ("graph.node[3].attribute[0]") where it fails.
class Decoder {
 public:
  explicit Decoder(const Source& source);

  bool next();  // moves to the next field; false at the end
  field::Number field() const { return reader_.tag(); }

  // --- the current field
  std::int64_t integer();
  float real();
  std::string_view bytes();
  std::string text() { return std::string(bytes()); }
  // A nested message; `this` must outlive it. `index` counts repeated fields; -1: not repeated.
  Decoder message(std::string_view name, std::int64_t index = -1);
  // Repeated numbers, packed or one by one.
  void append_to(std::vector<std::int64_t>& integers);
  void append_to(std::vector<float>& reals);
  // The content of repeated numbers, which reads the same packed and one by one.
  std::string_view packed_bytes();
  void skip();
  std::string rest();  // all fields that were not read yet, as they are
  // The field as it stands in the file, with its tag and length; moves past it.
  std::string_view raw();

  [[noreturn]] void fail(const std::string& why, std::string help = "") const;

 private:
  Decoder(const Decoder& parent, std::string_view content, std::string_view name,
          std::int64_t index);
  std::string path() const;
  void expect(protozero::pbf_wire_type type) const;
  template <class Read>
  auto guarded(Read read) const;

  const Source* source_;
  const Decoder* parent_ = nullptr;
  std::string_view name_;
  std::int64_t index_ = -1;
  const char* field_start_ = nullptr;  // where the tag of the current field stands
  protozero::pbf_reader reader_;
};

}  // namespace jaxport::wire
