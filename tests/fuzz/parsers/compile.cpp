// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a .jir program that is compiled. A program that verifies becomes a model
// or an error of the user's, never JXP-BUG.
#include "compile/compile.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "front/text.h"
#include "jaxport/error.h"
#include "wire/wire.h"

using namespace jaxport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const front::Module module =
        front::parse({reinterpret_cast<const char*>(data), size}, "fuzz.jir");
    if (module.functions.empty()) return 0;
    front::verify(module);
    wire::to_bytes(compile::compile(module, {}));
  } catch (const Error& error) {
    if (error.code() != "BUG") return 0;
    std::fputs(error.what(), stderr);
    std::abort();
  }
  return 0;
}
