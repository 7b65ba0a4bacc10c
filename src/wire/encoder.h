// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/field.h"
#include "wire/tensor_bytes.h"

namespace jaxport::wire {

// A protobuf message under construction. Tensors are kept as references, so the message costs
// memory only for its small parts; their bytes are read when the message is emitted.
class Encoder {
 public:
  void add_int(field::Number field, std::int64_t value);
  void add_float(field::Number field, float value);
  void add_text(field::Number field, std::string_view value);
  void add_fields(std::string_view fields);  // that are encoded already
  void add_tensor_bytes(field::Number field, StridedView view);

  // `body` adds the fields of the nested message to this encoder.
  template <class Body>
  void add_message(field::Number field, Body&& body) {
    const Mark mark = open();
    body();
    close(field, mark);
  }

  const std::string& fields() const { return text_; }  // without the bytes of tensors
  std::uint64_t size() const { return text_.size() + payload_bytes_; }
  void emit_to(const Sink& sink) const;

 private:
  struct Payload {
    std::size_t position;  // in text_, before which the bytes stand
    StridedView view;
  };
  struct Mark {
    std::size_t position, payloads;
    std::uint64_t payload_bytes;
  };
  Mark open() const { return {text_.size(), payloads_.size(), payload_bytes_}; }
  void close(field::Number field, const Mark& mark);

  std::string text_;
  std::vector<Payload> payloads_;
  std::uint64_t payload_bytes_ = 0;
};

}  // namespace jaxport::wire
