// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace jaxport::tool {

// A line on the terminal that says which stage a conversion is in, once it takes longer than two
// seconds. A thread of its own writes it, because a stage may say nothing for a while.
class Progress {
 public:
  Progress();
  ~Progress();  // the line is gone
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void enter(const char* stage) { stage_ = stage; }
  void wrote(std::uint64_t bytes, std::uint64_t total);
  void clear();  // for a message that is to stand on a line of its own

 private:
  void run();
  void show();

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<const char*> stage_ = "trace";
  std::atomic<std::uint64_t> written_ = 0, total_ = 0;
  std::atomic<std::int64_t> writing_since_ = 0;  // nanoseconds after start_
  std::mutex mutex_;                             // of all below, and of the terminal
  std::condition_variable changed_;
  bool is_over_ = false, is_shown_ = false;
  std::thread thread_;
};

// "1.2 of 6.0 GB, 350 MB/s"
std::string written_text(std::uint64_t written, std::uint64_t total, double seconds);

}  // namespace jaxport::tool
