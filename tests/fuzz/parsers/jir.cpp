// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a .jir file. What can be read and verified is read again as it prints.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "front/text.h"
#include "jaxport/error.h"

using namespace jaxport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  front::Module module;
  try {
    module = front::parse({reinterpret_cast<const char*>(data), size}, "fuzz.jir");
    front::verify(module);
  } catch (const Error& error) {
    if (error.code() == "BUG") std::abort();
    return 0;
  }
  const std::string text = front::print(module);
  if (front::print(front::parse(text, "printed.jir")) != text) std::abort();
  return 0;
}
