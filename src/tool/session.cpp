// SPDX-License-Identifier: Apache-2.0
#include "tool/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCategories[] = {"import", "axis",   "raise", "lower",
                                            "target", "passes", "write", "time"};
constexpr std::chrono::milliseconds kBetweenInterrupts{50};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::string text_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Two conversions at once, in threads or processes, get folders of their own.
fs::path new_folder(const fs::path& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  for (int i = 1; !error; ++i) {
    fs::path folder = parent / fmt::format("{:03}", i);
    if (fs::create_directory(folder, error)) return folder;
  }
  throw Error("E051",
              fmt::format("cannot keep the stages in '{}': {}", parent.string(), error.message()))
      .help("JAXPORT_DUMP names a folder that can be made or written to");
}

std::string times_text(const compile::Report& report) {
  std::string text;
  for (const compile::StageTime& time : report.times) {
    text += fmt::format("{:8} {:.6f} s\n", time.stage, time.seconds);
  }
  return text;
}

std::string findings_text(const compile::Report& report) {
  std::string text;
  for (const compile::Finding& finding : report.findings) {
    text += compile::to_string(finding) + "\n";
  }
  return text;
}

}  // namespace

void print_findings(const compile::Report& report) { fmt::print("{}", findings_text(report)); }

std::span<const std::string_view> log_categories() { return kCategories; }

SessionSettings settings_of_environment(const Limits& limits) {
  SessionSettings settings;
  settings.limits = limits;
  settings.dump = text_of_variable("JAXPORT_DUMP");
  settings.log = text_of_variable("JAXPORT_LOG");
  settings.shows_progress = ::isatty(STDERR_FILENO) != 0;
  return settings;
}

Session::Session(SessionSettings settings)
    : Watch(settings.limits), settings_(std::move(settings)), categories_(split(settings_.log)) {
  if (!settings_.print) {
    settings_.print = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  }
  if (settings_.shows_progress) progress_ = std::make_unique<Progress>();
  for (std::string_view name : categories_) {
    if (name == "all" || std::ranges::find(kCategories, name) != std::end(kCategories)) continue;
    settings_.print(fmt::format("jaxport: JAXPORT_LOG knows no '{}'; there are {} and all", name,
                                fmt::join(kCategories, ", ")));
  }
}

Session::~Session() = default;

bool Session::hears(std::string_view category) const {
  return std::ranges::any_of(
      categories_, [&](std::string_view name) { return name == category || name == "all"; });
}

void Session::say(std::string_view category, std::string_view text) {
  if (progress_) progress_->clear();
  settings_.print(fmt::format("jaxport {}: {}", category, text));
}

const fs::path& Session::folder() {
  if (folder_.empty() && !settings_.dump.empty()) folder_ = new_folder(settings_.dump);
  return folder_;
}

void Session::keep(std::string_view file, const std::function<std::string()>& text) {
  if (folder().empty()) return;
  const fs::path path = folder() / file;
  std::ofstream out(path, std::ios::binary);
  out << text();
  if (out.flush()) return;
  throw Error("E051", fmt::format("cannot write '{}'", path.string()))
      .help("free some space, or choose another folder with JAXPORT_DUMP");
}

void Session::close() {
  progress_.reset();
  settings_.print = [](std::string_view) {};
  settings_.interrupt = nullptr;
}

void Session::on_enter(const char* stage) {
  if (progress_) progress_->enter(stage);
}

void Session::on_write(std::uint64_t bytes, std::uint64_t total) {
  if (progress_) progress_->wrote(bytes, total);
}

void Session::on_look() {
  const auto now = std::chrono::steady_clock::now();
  if (!settings_.interrupt || now - last_interrupt_ < kBetweenInterrupts) return;
  last_interrupt_ = now;
  settings_.interrupt();
}

onnx::Model convert(Session& session, const front::Module& module, const ConvertOptions& options,
                    const lower::UserLowerings& lowerings, compile::Report& report) {
  const Watching watching(session);
  compile::Options chosen = compile::compile_options(options.choices);
  chosen.lowerings = lowerings;
  session.keep("0-program.jir", [&] { return case_text(module, options); });
  try {
    onnx::Model model = compile::compile(module, chosen, &report);
    session.keep("times.txt", [&] { return times_text(report); });
    session.keep("report.txt", [&] { return findings_text(report); });
    if (!session.folder().empty()) {
      wire::save(model, session.folder() / "model.onnx", options.write);
    }
    return model;
  } catch (const Error& error) {
    session.keep("error.txt", [&] { return fmt::format("{}\n", error.what()); });
    throw;
  }
}

}  // namespace jaxport::tool
