// SPDX-License-Identifier: Apache-2.0
// What jaxport and jaxport-opt share: errors go to standard error, once, and the exit code is 2.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "jaxport/error.h"
#include "tool/command.h"

namespace jaxport::tool {
namespace {

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error("E051",
              fmt::format("cannot write the output: {}", std::generic_category().message(errno)));
}

}  // namespace

int run_program(CLI::App& app, int argc, const char* const* argv, const Run& chosen) {
  try {
    app.parse(argc, argv);
    const int code = chosen();
    flush_output();
    return code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kFailed;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: there is not enough memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", Error("BUG", error.what()).what());
  }
  return kFailed;
}

}  // namespace jaxport::tool
