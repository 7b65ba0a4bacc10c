// SPDX-License-Identifier: Apache-2.0
// A process that writes a model is killed before each of its system calls, one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "wire_sample.h"

namespace jaxport::wire {
namespace {

// Another value has another size, so that data beside the wrong model shows.
onnx::Model model_of(std::int64_t value) {
  MutableTensor weight = allocate(DType::kF32, {1000 * value});
  for (int i = 0; i < 1000 * value; ++i) weight.as<float>()[i] = static_cast<float>(value);
  return add_model(weight.tensor);
}

// The child of this process that runs `action`, stopped at its first system call.
pid_t traced(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
  ::raise(SIGSTOP);
  action();
  ::_exit(0);
}

// Kills the child at its n-th stop before or after a system call. The exit code when it ends before
// that; nullopt when it was killed.
std::optional<int> kill_at(pid_t child, int stops) {
  int status = 0;
  ::waitpid(child, &status, 0);
  for (int i = 0; !WIFEXITED(status); ++i) {
    if (i == stops) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::nullopt;
    }
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  return WEXITSTATUS(status);
}

struct Counts {
  int kills = 0, old_models = 0, new_models = 0, none = 0;
};

// Writes the new model over the old one and kills the process at every moment.
Counts counts(const WriteOptions& before, const WriteOptions& options) {
  const onnx::Model old_model = model_of(1), new_model = model_of(2);
  const std::string old_bytes = to_bytes(old_model), new_bytes = to_bytes(new_model);
  Counts result;
  while (true) {
    const TemporaryFolder folder;
    const auto path = folder / "m.onnx";
    save(old_model, path, before);
    const pid_t child = traced([&] { save(new_model, path, options); });
    const std::optional<int> code = kill_at(child, result.kills);
    if (code == 2) return {};
    std::string found = "none";
    if (std::filesystem::exists(path)) found = to_bytes(load(path));
    EXPECT_TRUE(found == "none" || found == old_bytes || found == new_bytes);
    if (code) {
      EXPECT_EQ(*code, 0);
      EXPECT_EQ(found, new_bytes);
      return result;
    }
    ++result.kills;
    ++(found == old_bytes   ? result.old_models
       : found == new_bytes ? result.new_models
                            : result.none);
  }
}

constexpr WriteOptions kInline{}, kExternal{.external_threshold = 1, .inline_limit = 0};

TEST(Killed, model_is_the_old_or_the_new_one) {
  const Counts found = counts(kInline, kInline);
  if (found.kills == 0) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_GT(found.old_models, 3);
  EXPECT_GT(found.new_models, 0);
  EXPECT_EQ(found.none, 0);
}

TEST(Killed, model_that_gets_data_beside_it_is_the_old_or_the_new_one) {
  const Counts found = counts(kInline, kExternal);
  if (found.kills == 0) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_GT(found.old_models, 3);
  EXPECT_EQ(found.none, 0);
}

TEST(Killed, data_of_one_model_never_meets_another) {
  const Counts found = counts(kExternal, kExternal);
  if (found.kills == 0) GTEST_SKIP() << "processes cannot be traced here";
  EXPECT_GT(found.old_models, 3);
  EXPECT_GT(found.new_models, 0);
  EXPECT_EQ(found.none, 0);
}

}  // namespace
}  // namespace jaxport::wire
