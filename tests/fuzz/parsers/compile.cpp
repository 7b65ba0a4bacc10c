// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a .jir program that is compiled; the last one chooses how. A program that
// verifies becomes a model or an error of the user's, never JXP-BUG.
#include "compile/compile.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "compile/choices.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "wire/wire.h"

using namespace jaxport;

namespace {

// The next digit of a number, whose base is the number of choices.
template <class T, std::size_t kCount>
T next(const T (&choices)[kCount], unsigned& number) {
  const T chosen = choices[number % kCount];
  number /= kCount;
  return chosen;
}

// The newline that ends a text stands for the usual choices.
compile::Options options_of(std::uint8_t byte) {
  unsigned number = static_cast<std::uint8_t>(byte - '\n');
  compile::Choices choices;
  choices.opset = next({23, 16, 26}, number);
  choices.target = next({"onnxruntime", "onnx", "openvino", "onnxruntime-web"}, number);
  choices.exact = next({false, true}, number);
  choices.functions = next({"marked", "auto"}, number);
  choices.precision = next({"f32", "f16", "bf16"}, number);
  return compile::compile_options(choices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size - 1);
    const front::Module module = front::parse(text, "fuzz.jir");
    if (module.functions.empty()) return 0;
    front::verify(module);
    wire::to_bytes(compile::compile(module, options_of(data[size - 1])));
  } catch (const Error& error) {
    if (error.code() != "BUG") return 0;
    std::fputs(error.what(), stderr);
    std::abort();
  }
  return 0;
}
