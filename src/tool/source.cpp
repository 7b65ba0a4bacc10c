// SPDX-License-Identifier: Apache-2.0
#include "tool/source.h"

#include <fmt/format.h>

#include <string_view>

#include "front/text.h"
#include "jaxport/error.h"
#include "wire/file.h"

namespace jaxport::tool {

front::Module read_program(const std::string& path) {
  const wire::MappedFile file = wire::map_file(path, "program");
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.get()), file.size);
  front::Module module = front::parse(text, path);
  if (module.functions.empty()) {
    throw Error("E010", fmt::format("'{}' has no function", path))
        .help("a program starts with 'func @name(…) {'");
  }
  front::verify(module);
  return module;
}

}  // namespace jaxport::tool
