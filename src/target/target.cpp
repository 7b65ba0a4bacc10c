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

// A name comes before those that begin like it.
constexpr Runtime kWithVersions[] = {Runtime::kOnnxRuntimeWeb, Runtime::kOnnxRuntime,
                                     Runtime::kOpenVino};

std::string span_text(Runtime runtime) {
  const auto versions = releases(runtime);
  const std::string first = version_text(versions.front().version);
  const std::string last = version_text(versions.back().version);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

[[noreturn]] void refuse(std::string_view name) {
  const auto versions = releases(Runtime::kOnnxRuntime);
  throw Error("E079", fmt::format("target '{}' is unknown", excerpt(name)))
      .help(fmt::format(
          "use 'onnxruntime', 'onnxruntime>={0}' or 'onnxruntime=={0}' with a version from {1}, "
          "the same of 'onnxruntime-web' ({2}) or 'openvino' ({3}), or 'onnx' for a model that "
          "keeps to the specification alone",
          version_text(versions[versions.size() / 2].version), span_text(Runtime::kOnnxRuntime),
          span_text(Runtime::kOnnxRuntimeWeb), span_text(Runtime::kOpenVino)));
}

std::optional<int> number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > 9999) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "1.20", or "1.20.1", whose last number does not matter; nullopt when no such version is known,
// or, for a range that it begins, no later one.
std::optional<int> version_from(Runtime runtime, std::string_view text, bool begins) {
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
  const auto known = releases(runtime);
  const bool is_known = std::ranges::any_of(known, [&](const Release& release) {
    const bool lies_between = known.front().version < version && version < release.version;
    return release.version == version || (begins && lies_between);
  });
  return text.empty() && is_known ? std::optional(version) : std::nullopt;
}

[[noreturn]] void refuse_opset(const Target& target, int opset) {
  const auto versions = releases(target.runtime);
  const auto runs_it =
      std::ranges::find_if(versions, [&](const Release& r) { return r.opset >= opset; });
  const std::string newer =
      runs_it == versions.end()
          ? ""
          : fmt::format(", or a target from '{}>={}' on", name_of(target.runtime),
                        version_text(runs_it->version));
  throw Error("E011", fmt::format("{} {} does not run opset {}", title_of(target.runtime),
                                  version_text(target.oldest), opset))
      .help(fmt::format("use opset {} or older ('auto' is the newest that the target runs){}",
                        newest_opset(target), newer));
}

template <class Member>
int least_of(const Target& target, Member member, int most) {
  for (const Release& release : releases(target.runtime)) {
    if (has(target, release)) most = std::min(most, release.*member);
  }
  return most;
}

}  // namespace

std::string_view name_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::kOnnxRuntime:
      return "onnxruntime";
    case Runtime::kOnnxRuntimeWeb:
      return "onnxruntime-web";
    case Runtime::kOpenVino:
      return "openvino";
    case Runtime::kOnnx:
      return "onnx";
  }
  return "";
}

std::string_view title_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::kOnnxRuntime:
      return "ONNX Runtime";
    case Runtime::kOnnxRuntimeWeb:
      return "ONNX Runtime Web";
    case Runtime::kOpenVino:
      return "OpenVINO";
    case Runtime::kOnnx:
      return "ONNX";
  }
  return "";
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 100, version % 100); }

Target target_from_name(std::string_view name) {
  if (name == "onnx") return Target::kOnnx;
  for (const Runtime runtime : kWithVersions) {
    if (!name.starts_with(name_of(runtime))) continue;
    const std::string_view rest = name.substr(name_of(runtime).size());
    if (rest.empty()) return {.runtime = runtime};
    if (!rest.starts_with(">=") && !rest.starts_with("==")) break;
    const bool begins = rest.starts_with(">=");
    const std::optional<int> version = version_from(runtime, rest.substr(2), begins);
    if (!version) break;
    return {runtime, *version, begins ? kOpen : *version};
  }
  refuse(name);
}

Target for_opset(const Target& target, int opset) {
  if (target.runtime == Runtime::kOnnx) return target;
  Target result = target;
  if (target.oldest == 0) {
    const auto versions = releases(target.runtime);
    const auto first =
        std::ranges::find_if(versions, [&](const Release& r) { return r.opset >= opset; });
    result.oldest = (first == versions.end() ? versions.back() : *first).version;
  } else if (opset > newest_opset(target)) {
    refuse_opset(target, opset);
  }
  return result;
}

int newest_opset(const Target& target) {
  if (target.runtime == Runtime::kOnnx) return onnx::kNewestOpset;
  if (target.oldest == 0)
    return std::min(onnx::kNewestOpset, releases(target.runtime).back().opset);
  return least_of(target, &Release::opset, onnx::kNewestOpset);
}

int newest_ir_version(const Target& target) {
  if (target.runtime == Runtime::kOnnx) return releases(Runtime::kOnnxRuntime).back().ir;
  return least_of(target, &Release::ir, releases(target.runtime).back().ir);
}

std::string requirement(const Target& target, int opset) {
  if (target.runtime == Runtime::kOnnx) return fmt::format("onnx opset {}", opset);
  const Target versions = for_opset(target, opset);
  const bool is_one = versions.oldest == versions.newest;
  return fmt::format("{}{}{}", name_of(target.runtime),
                     is_one ? "==" : ">=", version_text(versions.oldest));
}

const Preferences& preferences(const Target& target) {
  switch (target.runtime) {
    case Runtime::kOnnx:
      return kOnnxPreferences;
    case Runtime::kOpenVino:
      return kOpenVinoPreferences;
    case Runtime::kOnnxRuntimeWeb:
      return kWebPreferences;
    default:
      return kOnnxRuntimePreferences;
  }
}

}  // namespace jaxport::target
