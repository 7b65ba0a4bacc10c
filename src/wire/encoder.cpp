// SPDX-License-Identifier: Apache-2.0
#include "wire/encoder.h"

#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <span>
#include <utility>

namespace jaxport::wire {
namespace {

// Tag and length of a field whose content is not at hand.
std::string header(field::Number field, std::uint64_t length) {
  std::string text;
  protozero::add_varint_to_buffer(
      &text, protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited));
  protozero::add_varint_to_buffer(&text, length);
  return text;
}

}  // namespace

void Encoder::add_int(field::Number field, std::int64_t value) {
  protozero::pbf_writer(text_).add_int64(field, value);
}

void Encoder::add_float(field::Number field, float value) {
  protozero::pbf_writer(text_).add_float(field, value);
}

void Encoder::add_text(field::Number field, std::string_view value) {
  protozero::pbf_writer(text_).add_bytes(field, value.data(), value.size());
}

void Encoder::add_fields(std::string_view fields) { text_ += fields; }

void Encoder::add_tensor_bytes(field::Number field, StridedView view) {
  const std::uint64_t bytes = file_bytes(view);
  text_ += header(field, bytes);
  payloads_.push_back({text_.size(), std::move(view)});
  payload_bytes_ += bytes;
}

void Encoder::close(field::Number field, const Mark& mark) {
  const std::uint64_t length = text_.size() - mark.position + payload_bytes_ - mark.payload_bytes;
  const std::string head = header(field, length);
  text_.insert(mark.position, head);
  for (std::size_t i = mark.payloads; i < payloads_.size(); ++i) {
    payloads_[i].position += head.size();
  }
}

void Encoder::emit_to(const Sink& sink) const {
  const auto text = std::as_bytes(std::span(text_));
  std::size_t done = 0;
  for (const Payload& payload : payloads_) {
    sink(text.subspan(done, payload.position - done));
    emit(payload.view, sink);
    done = payload.position;
  }
  sink(text.subspan(done));
}

}  // namespace jaxport::wire
