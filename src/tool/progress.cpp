// SPDX-License-Identifier: Apache-2.0
#include "tool/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace jaxport::tool {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kUntilShown{2000}, kBetween{250};
constexpr const char* kStartOfLine = "\r\033[K";  // and nothing on it

double since(steady_clock::time_point start) {
  return duration<double>(steady_clock::now() - start).count();
}

}  // namespace

std::string written_text(std::uint64_t written, std::uint64_t total, double seconds) {
  const bool is_large = total >= 1'000'000'000;
  const double unit = is_large ? 1e9 : 1e6;
  const double rate = seconds > 0 ? static_cast<double>(written) / seconds / 1e6 : 0;
  return fmt::format("{:.1f} of {:.1f} {}, {:.0f} MB/s", static_cast<double>(written) / unit,
                     static_cast<double>(total) / unit, is_large ? "GB" : "MB", rate);
}

Progress::Progress() : thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  clear();
}

void Progress::wrote(std::uint64_t bytes, std::uint64_t total) {
  if (bytes < written_ || written_ == 0) {
    writing_since_ = (steady_clock::now() - start_).count();
  }
  total_ = total;
  written_ = bytes;
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(is_shown_, false)) return;
  fmt::print(stderr, "{}", kStartOfLine);
  std::fflush(stderr);
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return is_over_; };
  if (changed_.wait_for(lock, kUntilShown, is_over)) return;
  do show();
  while (!changed_.wait_for(lock, kBetween, is_over));
}

void Progress::show() {
  std::string text = fmt::format("jaxport: {}  {:.0f} s", stage_.load(), since(start_));
  if (written_ > 0) {
    const steady_clock::duration since_write(writing_since_.load());
    text += "  " + written_text(written_, total_, since(start_ + since_write));
  }
  fmt::print(stderr, "{}{}", kStartOfLine, text);
  std::fflush(stderr);
  is_shown_ = true;
}

}  // namespace jaxport::tool
