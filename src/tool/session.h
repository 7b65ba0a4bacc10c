// SPDX-License-Identifier: Apache-2.0
// The watch of a tool: prints messages, keeps what the stages make, shows progress.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "front/ir.h"
#include "onnx/ir.h"
#include "support/watch.h"
#include "tool/options.h"
#include "tool/progress.h"

namespace jaxport::tool {

struct SessionSettings {
  Limits limits;
  std::string dump;  // a folder, in which each conversion gets one of its own; "": nothing is kept
  std::string log;   // categories, such as "axis,raise"; "all" are all of them
  bool shows_progress = false;
  std::function<void(std::string_view)> print;  // a line of a message; by default to stderr
  std::function<void()> interrupt;              // now and then; may throw
};
// From JAXPORT_DUMP and JAXPORT_LOG; progress is shown when standard error is a terminal.
SessionSettings settings_of_environment(const Limits& limits);

class Session : public Watch {
 public:
  explicit Session(SessionSettings settings);
  ~Session() override;

  bool hears(std::string_view category) const override;
  void say(std::string_view category, std::string_view text) override;
  void keep(std::string_view file, const std::function<std::string()>& text) override;
  void on_write(std::uint64_t bytes, std::uint64_t total) override;

  // The folder of this conversion; it is made when it is first needed. "" when nothing is kept.
  const std::filesystem::path& folder();
  // No progress is shown and nobody is called from here on.
  void close();

 protected:
  void on_enter(const char* stage) override;
  void on_look() override;

 private:
  SessionSettings settings_;
  std::vector<std::string_view> categories_;  // views of settings_.log
  std::filesystem::path folder_;
  std::unique_ptr<Progress> progress_;
  std::chrono::steady_clock::time_point last_interrupt_ = std::chrono::steady_clock::now();
};

void print_findings(const compile::Report& report);  // what was raised, and what nearly was

// What can be asked for with JAXPORT_LOG.
std::span<const std::string_view> log_categories();

// Compiles a program under the watch of a session, which keeps the case, the times, the model and
// the report, or the error.
onnx::Model convert(Session& session, const front::Module& module, const ConvertOptions& options,
                    const lower::UserLowerings& lowerings, compile::Report& report);

}  // namespace jaxport::tool
