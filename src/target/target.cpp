// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "jaxport/error.h"
#include "onnx/schema.h"
#include "support/text.h"
#include "target/kernels.h"

namespace jaxport::target {
namespace {

// Both run the kernels for the CPU: in WebAssembly all of them are built, too.
constexpr std::string_view kRuntimeNames[] = {"onnxruntime-web", "onnxruntime"};

int oldest_version() { return releases().front().version; }
int newest_version() { return releases().back().version; }

[[noreturn]] void refuse(std::string_view name) {
  throw Error("E079", fmt::format("target '{}' is unknown", excerpt(name)))
      .help(
          fmt::format("use 'onnxruntime', 'onnxruntime>={0}' or 'onnxruntime=={0}' with a version "
                      "from {1} to {2}, the same of 'onnxruntime-web', or 'onnx' for a model that "
                      "keeps to the specification alone",
                      version_text(releases()[releases().size() / 2].version),
                      version_text(oldest_version()), version_text(newest_version())));
}

std::optional<int> number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > 99) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "1.20", or "1.20.1", whose last number does not matter; nullopt when no such version is known.
std::optional<int> version_from(std::string_view text) {
  int parts[3] = {};
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    const std::optional<int> part = number(text);
    if (!part) return std::nullopt;
    parts[i] = *part;
    if (text.empty() && i > 0) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  const int version = 100 * parts[0] + parts[1];
  const bool is_known =
      std::ranges::find(releases(), version, &Release::version) != releases().end();
  return text.empty() && is_known ? std::optional(version) : std::nullopt;
}

[[noreturn]] void refuse_opset(const Target& target, int opset) {
  const auto runs_it =
      std::ranges::find_if(releases(), [&](const Release& r) { return r.opset >= opset; });
  throw Error("E011", fmt::format("ONNX Runtime {} does not run opset {}",
                                  version_text(target.oldest), opset))
      .help(fmt::format("use opset {} or older ('auto' is the newest that the target runs), or a "
                        "target from 'onnxruntime>={}' on",
                        newest_opset(target), version_text(runs_it->version)));
}

template <class Member>
int least_of(const Target& target, Member member, int most) {
  for (const Release& release : releases()) {
    if (has(target, release)) most = std::min(most, release.*member);
  }
  return most;
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 100, version % 100); }

Target target_from_name(std::string_view name) {
  if (name == "onnx") return Target::kOnnx;
  for (std::string_view runtime : kRuntimeNames) {
    if (!name.starts_with(runtime)) continue;
    const std::string_view rest = name.substr(runtime.size());
    if (rest.empty()) return Target::kOnnxRuntime;
    if (!rest.starts_with(">=") && !rest.starts_with("==")) break;
    const std::optional<int> version = version_from(rest.substr(2));
    if (!version) break;
    return {Runtime::kOnnxRuntime, *version, rest.starts_with("==") ? *version : kOpen};
  }
  refuse(name);
}

Target for_opset(const Target& target, int opset) {
  if (target.runtime == Runtime::kOnnx) return target;
  Target result = target;
  if (target.oldest == 0) {
    const auto first =
        std::ranges::find_if(releases(), [&](const Release& r) { return r.opset >= opset; });
    result.oldest = (first == releases().end() ? releases().back() : *first).version;
  } else if (opset > newest_opset(target)) {
    refuse_opset(target, opset);
  }
  return result;
}

int newest_opset(const Target& target) {
  if (target.runtime == Runtime::kOnnx || target.oldest == 0) return onnx::kNewestOpset;
  return least_of(target, &Release::opset, onnx::kNewestOpset);
}

int newest_ir_version(const Target& target) {
  return least_of(target, &Release::ir, releases().back().ir);
}

std::string requirement(const Target& target, int opset) {
  if (target.runtime == Runtime::kOnnx) return fmt::format("onnx opset {}", opset);
  const Target versions = for_opset(target, opset);
  const bool is_one = versions.oldest == versions.newest;
  return fmt::format("onnxruntime{}{}", is_one ? "==" : ">=", version_text(versions.oldest));
}

const Preferences& preferences(const Target& target) {
  return target.runtime == Runtime::kOnnxRuntime ? kOnnxRuntimePreferences : kOnnxPreferences;
}

}  // namespace jaxport::target
