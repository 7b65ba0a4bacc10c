// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as an ONNX model, which goes through what every command does with one. What
// can be read is written, and what was written is read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "explore/explore.h"
#include "inspect/operators.h"
#include "jaxport/error.h"
#include "onnx/ir.h"
#include "pass/optimise.h"
#include "target/fit.h"
#include "tool/check.h"
#include "wire/wire.h"

using namespace jaxport;

namespace {

struct Bytes {
  const std::uint8_t* data;
  std::size_t size;
};

onnx::Model read(Bytes bytes, const wire::ReadOptions& options) {
  // A copy of just these bytes, so that the address sanitizer sees what leaves them.
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size]);
  std::memcpy(copy.get(), bytes.data, bytes.size);
  return wire::from_bytes({copy, copy.get()}, bytes.size, "/nonexistent", options);
}

onnx::Model read_again(const std::string& written, const wire::ReadOptions& options) {
  try {
    return read({reinterpret_cast<const std::uint8_t*>(written.data()), written.size()}, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "what was written cannot be read: %s\n", error.what());
    std::abort();
  }
}

void check(Bytes bytes) {
  const onnx::Model model = read(bytes, {.check_names = false, .function_attributes = true});
  tool::check(model);
  onnx::print(model);
  onnx::stats(model);
}

void fit(Bytes bytes) {
  const onnx::Model model = read(bytes, {});
  for (const target::Runtime runtime :
       {target::Runtime::kOnnxRuntime, target::Runtime::kOnnxRuntimeWeb,
        target::Runtime::kOpenVino}) {
    target::advice(target::fit(model, runtime));
  }
}

void list_operators(Bytes bytes) {
  inspect::Operators operators;
  operators.add(read(bytes, {}));
  operators.config(true);
}

void show(Bytes bytes) { explore::data_of(read(bytes, {.function_attributes = true})); }

void optimise(Bytes bytes) {
  wire::Kept kept;
  onnx::Model model = read(bytes, {.kept = &kept});
  pass::optimise(model, kept.functions);
  const std::string written = wire::to_bytes(model, {.kept = &kept});
  wire::Kept kept_again;
  read_again(written, {.kept = &kept_again});
}

void round_trip(Bytes bytes) {
  const std::string written = wire::to_bytes(read(bytes, {}));
  if (wire::to_bytes(read_again(written, {})) != written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  for (const auto& use : {check, fit, list_operators, show, optimise, round_trip}) {
    try {
      use({data, size});
    } catch (const Error& error) {
      if (error.code() != "BUG") continue;
      std::fputs(error.what(), stderr);
      std::abort();
    }
  }
  return 0;
}
