// SPDX-License-Identifier: Apache-2.0
#include "support/watch.h"

#include <fmt/format.h>

#include <utility>

#include "jaxport/error.h"

namespace jaxport {
namespace {

thread_local Watch* current = nullptr;

[[noreturn]] void exceed(std::string message, std::string_view limit) {
  throw Error(std::string(kLimitCode), std::move(message))
      .help(fmt::format("if the program is meant to be like this, raise the limit: "
                        "limits=jaxport.Limits({0}=…), or --max-{0} on the command line",
                        limit));
}

}  // namespace

void Watch::require_nodes(std::size_t nodes, std::string_view of) const {
  if (nodes <= static_cast<std::size_t>(limits_.nodes)) return;
  exceed(fmt::format("{} would have more than {} nodes", of, limits_.nodes), "nodes");
}

void Watch::require_bytes(std::uint64_t bytes, std::string_view of) const {
  if (bytes <= limits_.bytes) return;
  exceed(fmt::format("{} would have {} bytes, more than the {} that are allowed", of, bytes,
                     limits_.bytes),
         "bytes");
}

void Watch::add_equation() {
  poll();
  if (++equations_ <= limits_.nodes) return;
  exceed(fmt::format("the program has more than {} equations, calls and unrolled loops included",
                     limits_.nodes),
         "nodes");
}

void Watch::enter(const char* stage) {
  stage_ = stage;
  equations_ = 0;
  on_enter(stage);
  look();
}

void Watch::look() {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  if (spent.count() > limits_.seconds) {
    exceed(fmt::format("the conversion takes longer than {} seconds; it stopped in the stage '{}'",
                       limits_.seconds, stage_),
           "seconds");
  }
  on_look();
}

Watch& watch() {
  if (current != nullptr) return *current;
  thread_local Watch nobody;
  return nobody;
}

Watching::Watching(Watch& watch) : before_(std::exchange(current, &watch)) {}
Watching::~Watching() { current = before_; }

Nested::Nested() : watch_(watch()) {
  if (watch_.depth_ >= watch_.limits_.depth) {
    exceed(fmt::format("nested more than {} levels deep", watch_.limits_.depth), "depth");
  }
  ++watch_.depth_;
}

}  // namespace jaxport
