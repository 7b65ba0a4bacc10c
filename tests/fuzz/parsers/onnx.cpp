// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as an ONNX model. What can be read is checked, printed and written, and what
// was written is read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "jaxport/error.h"
#include "onnx/ir.h"
#include "tool/check.h"
#include "wire/wire.h"

using namespace jaxport;

namespace {

onnx::Model read(const void* data, std::size_t size, const wire::ReadOptions& options) {
  // A copy of just these bytes, so that the address sanitizer sees what leaves them.
  const std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
  std::memcpy(bytes.get(), data, size);
  return wire::from_bytes({bytes, bytes.get()}, size, "/nonexistent", options);
}

void inspect(const std::uint8_t* data, std::size_t size) {
  const onnx::Model model = read(data, size, {.check_names = false, .function_attributes = true});
  tool::check(model);
  onnx::print(model);
  onnx::stats(model);
}

void round_trip(const std::uint8_t* data, std::size_t size) {
  const onnx::Model model = read(data, size, {});
  const std::string bytes = wire::to_bytes(model);
  if (wire::to_bytes(read(bytes.data(), bytes.size(), {})) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  for (const auto& use : {inspect, round_trip}) {
    try {
      use(data, size);
    } catch (const Error& error) {
      if (error.code() == "BUG") std::abort();
    }
  }
  return 0;
}
