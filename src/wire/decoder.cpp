// SPDX-License-Identifier: Apache-2.0
#include "wire/decoder.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "jaxport/error.h"

namespace jaxport::wire {
namespace {

using WireType = protozero::pbf_wire_type;

std::string_view to_string_view(const protozero::data_view& view) {
  return {view.data(), view.size()};
}

}  // namespace

Decoder::Decoder(const Source& source)
    : source_(&source), reader_(source.bytes.data(), source.bytes.size()) {}

Decoder::Decoder(const Decoder& parent, std::string_view content, std::string_view name,
                 std::int64_t index)
    : source_(parent.source_),
      parent_(&parent),
      name_(name),
      index_(index),
      reader_(content.data(), content.size()) {}

// protozero reports what is wrong, we add where.
template <class Read>
auto Decoder::guarded(Read read) const {
  try {
    return read();
  } catch (const protozero::end_of_buffer_exception&) {
    fail("a field runs past the end of its message");
  } catch (const protozero::exception& problem) {
    fail(fmt::format("malformed protobuf ({})", problem.what()));
  }
}

bool Decoder::next() {
  field_start_ = reader_.data().data();
  return guarded([&] { return reader_.next(); });
}

void Decoder::expect(WireType type) const {
  if (!reader_.has_wire_type(type)) fail(fmt::format("field {} has a wrong wire type", field()));
}

std::int64_t Decoder::integer() {
  expect(WireType::varint);
  return guarded([&] { return reader_.get_int64(); });
}

float Decoder::real() {
  expect(WireType::fixed32);
  return guarded([&] { return reader_.get_float(); });
}

std::string_view Decoder::bytes() {
  expect(WireType::length_delimited);
  return to_string_view(guarded([&] { return reader_.get_view(); }));
}

Decoder Decoder::message(std::string_view name, std::int64_t index) {
  return {*this, bytes(), name, index};
}

std::string_view Decoder::packed_bytes() {
  if (reader_.has_wire_type(WireType::length_delimited)) return bytes();
  const char* first = reader_.data().data();
  skip();
  return {first, static_cast<std::size_t>(reader_.data().data() - first)};
}

void Decoder::append_to(std::vector<std::int64_t>& integers) {
  if (!reader_.has_wire_type(WireType::length_delimited)) {
    integers.push_back(integer());
    return;
  }
  guarded([&] {
    for (std::int64_t value : reader_.get_packed_int64()) integers.push_back(value);
  });
}

void Decoder::append_to(std::vector<float>& reals) {
  if (!reader_.has_wire_type(WireType::length_delimited)) {
    reals.push_back(real());
    return;
  }
  guarded([&] {
    for (float value : reader_.get_packed_float()) reals.push_back(value);
  });
}

void Decoder::skip() {
  guarded([&] { reader_.skip(); });
}

std::string Decoder::rest() {
  const auto view = reader_.data();
  return {view.data(), view.size()};
}

std::string_view Decoder::raw() {
  skip();
  return {field_start_, static_cast<std::size_t>(reader_.data().data() - field_start_)};
}

std::string Decoder::path() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->path();
  if (!path.empty()) path += '.';
  path += name_;
  if (index_ >= 0) path += fmt::format("[{}]", index_);
  return path;
}

void Decoder::fail(const std::string& why, std::string help) const {
  const auto position = reader_.data().data() - source_->bytes.data();
  const std::string where = path();
  const std::string model = source_->name.empty() ? "" : fmt::format(" '{}'", source_->name);
  throw Error("E052", fmt::format("cannot read model{}: {}", model, why))
      .note(fmt::format("at byte {}{}{}", position, where.empty() ? "" : " in ", where))
      .help(help.empty() ? "check that the file is a complete ONNX model; it may be truncated"
                         : std::move(help));
}

}  // namespace jaxport::wire
