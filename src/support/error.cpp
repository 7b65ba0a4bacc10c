// SPDX-License-Identifier: Apache-2.0
#include "jaxport/error.h"

#include <fmt/format.h>

namespace jaxport {
namespace {

std::string help_line(const std::string& code, const std::string& help) {
  if (code == "BUG") {
    return help.empty() ? "this is a fault of jaxport, please report it with this message"
                        : help + "; this is a fault of jaxport, please report it";
  }
  std::string anchor = code;
  for (char& c : anchor) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return fmt::format("{}{}see docs/errors.md#{}", help, help.empty() ? "" : "; ", anchor);
}

}  // namespace

Error& Error::render() {
  rendered_ = fmt::format("error[JXP-{}]: {}", code_, message_);
  if (!source_.empty()) rendered_ += "\n  at " + source_;
  if (!equation_.empty()) rendered_ += "\n  equation: " + equation_;
  for (const std::string& note : notes_) rendered_ += "\n  " + note;
  rendered_ += "\n  help: " + help_line(code_, help_);
  return *this;
}

}  // namespace jaxport
