// SPDX-License-Identifier: Apache-2.0
#include "tool/source.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "front/text.h"
#include "jaxport/error.h"
#include "tool/options.h"
#include "wire/file.h"

namespace jaxport::tool {

namespace {

std::string_view text_of(const wire::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes.get()), file.size};
}

}  // namespace

front::Module read_program(const std::string& path) {
  const wire::MappedFile file = wire::map_file(path, "program");
  front::Module module = front::parse(text_of(file), path);
  if (module.functions.empty()) {
    throw Error("E010", fmt::format("'{}' has no function", path))
        .help("a program starts with 'func @name(…) {'");
  }
  front::verify(module);
  return module;
}

bool is_python_function(const std::string& program) {
  return program.find(':') != std::string::npos && !std::filesystem::exists(program);
}

std::vector<std::string> read_case_arguments(const std::string& path) {
  const wire::MappedFile file = wire::map_file(path, "program");
  return case_arguments(text_of(file));
}

}  // namespace jaxport::tool
