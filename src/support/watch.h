// SPDX-License-Identifier: Apache-2.0
// Who watches a conversion: the limits that it keeps, and who hears what happens in it.
//
// The compiler tells the watch of its thread what it does. A tool that wants to show, keep or stop
// something derives from Watch; without one, nobody hears and the usual limits hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace jaxport {

// What a conversion may take. Beyond it Error E110 ends the conversion.
struct Limits {
  // Equations of the program, those of calls and unrolled loops as often as they are inlined; nodes
  // of each graph that is made of them.
  std::int64_t nodes = 1'000'000;
  // Of a program's text, of an array that the compiler computes, and of the model.
  std::uint64_t bytes = std::uint64_t{1} << 40;
  // Functions, lists and parameters inside of each other.
  int depth = 200;
  double seconds = std::numeric_limits<double>::infinity();
};
constexpr std::string_view kLimitCode = "E110";

class Watch {
 public:
  explicit Watch(const Limits& limits = {}) : limits_(limits) {}
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const Limits& limits() const { return limits_; }

  // --- limits: each throws Error E110
  void require_nodes(std::size_t nodes, std::string_view of) const;
  void require_bytes(std::uint64_t bytes, std::string_view of) const;
  // Another equation was added to the graph; enter() counts from 0 again.
  void add_equation();
  // To be called at least every few milliseconds.
  void poll() {
    if (++polls_ % kPollsPerLook == 0) look();
  }

  // --- what happens
  void enter(const char* stage);  // a name that lives forever
  virtual void on_write(std::uint64_t /*bytes*/, std::uint64_t /*total*/) {}
  // Whether anybody hears messages of a category, and a message for them.
  virtual bool hears(std::string_view /*category*/) const { return false; }
  virtual void say(std::string_view /*category*/, std::string_view /*text*/) {}
  // What a stage made, for those who keep it; the text is only made for them.
  virtual void keep(std::string_view /*file*/, const std::function<std::string()>& /*text*/) {}

 protected:
  virtual void on_enter(const char* /*stage*/) {}
  virtual void on_look() {}  // now and then; may throw to end the conversion

 private:
  friend class Nested;
  static constexpr unsigned kPollsPerLook = 64;
  void look();

  Limits limits_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const char* stage_ = "";
  std::int64_t equations_ = 0;
  unsigned polls_ = 0;
  int depth_ = 0;
};

// The watch of this thread.
Watch& watch();

// `watch` is that of this thread meanwhile.
class Watching {
 public:
  explicit Watching(Watch& watch);
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  Watch* before_;
};

// One level of nesting of what is read: hostile input must not exhaust the stack.
class Nested {
 public:
  Nested();  // Error E110
  ~Nested() { --watch_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Watch& watch_;
};

}  // namespace jaxport
