// SPDX-License-Identifier: Apache-2.0
// Programs that are compiled by several threads at once give the bytes that they give alone. The
// thread sanitizer runs this test: make test-threads.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "compile/compile.h"
#include "front/text.h"
#include "golden.h"
#include "jaxport/error.h"
#include "wire/wire.h"

namespace jaxport {
namespace {

constexpr std::size_t kThreads = 4;

// The first function of a file as a model, or the error that it gives.
std::string compiled(const std::string& text) {
  try {
    const front::Module module = front::parse(text, "threads.jir");
    return wire::to_bytes(compile::compile(module, {}), {});
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> texts;
  for (const char* folder : {"lower", "raise", "raise/rules", "axis"}) {
    for (const auto& file : golden::files_of(folder)) texts.push_back(golden::text_of(file));
  }
  return texts;
}

TEST(Threads, give_the_bytes_of_one) {
  const std::vector<std::string> texts = programs();
  ASSERT_GT(texts.size(), 30u);
  std::vector<std::string> together(texts.size() * 2);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < together.size(); i = next++) {
      together[i] = compiled(texts[i / 2]);  // neighbours compile one program at the same time
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(together[2 * i], together[2 * i + 1]) << i;
    EXPECT_EQ(together[2 * i], compiled(texts[i])) << i;
  }
}

}  // namespace
}  // namespace jaxport
