// SPDX-License-Identifier: Apache-2.0
#include "target/kernels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace jaxport::target {
namespace {

using Types = std::span<const onnx::TypeConstraint>;

// What one kernel takes in the versions from `first` to `last`.
struct KernelRow {
  std::string_view op;
  std::uint8_t since;  // of the schema
  int first, last;
  Types types;
};

#include "target/kernels.inc"
#include "target/kernels_openvino.inc"
#include "target/kernels_web.inc"

std::span<const KernelRow> rows_of(Runtime runtime) {
  return runtime == Runtime::kOpenVino ? std::span<const KernelRow>(kOpenVinoRows) : kKernelRows;
}

// What two kernels both take; nullopt when they have no dtype in common.
std::optional<Kernel> common(const Kernel& a, const Kernel& b) {
  Kernel result = a;
  for (const onnx::TypeConstraint& type : b.types) {
    const auto known =
        std::ranges::find(result.types, type.variable, &onnx::TypeConstraint::variable);
    if (known == result.types.end()) {
      result.types.push_back(type);
    } else if (known->dtypes != type.dtypes) {
      known->dtypes &= type.dtypes;
      if (known->dtypes == 0) return std::nullopt;
    }
  }
  return result;
}

// What some kernel of one version and some kernel of another both take.
std::vector<Kernel> in_both(const std::vector<Kernel>& some, const std::vector<Kernel>& others) {
  std::vector<Kernel> result;
  for (const Kernel& a : some) {
    for (const Kernel& b : others) {
      if (std::optional<Kernel> both = common(a, b)) result.push_back(std::move(*both));
    }
  }
  return result;
}

std::span<const KernelRow> rows_of(Runtime runtime, const onnx::Schema& schema) {
  constexpr auto kKey = [](const KernelRow& row) { return std::pair(row.op, row.since); };
  return std::ranges::equal_range(rows_of(runtime), std::pair(schema.op, schema.since), {}, kKey);
}

std::vector<const KernelRow*> rows_in(std::span<const KernelRow> rows, const Release& release) {
  std::vector<const KernelRow*> result;
  for (const KernelRow& row : rows) {
    if (row.first <= release.version && release.version <= row.last) result.push_back(&row);
  }
  return result;
}

std::vector<Kernel> as_kernels(const std::vector<const KernelRow*>& rows) {
  std::vector<Kernel> result;
  for (const KernelRow* row : rows) result.push_back({{row->types.begin(), row->types.end()}});
  return result;
}

std::vector<Kernel> kernels_in_all(const Target& target, const onnx::Schema& schema) {
  if (target.runtime == Runtime::kOnnx) return {{{schema.types.begin(), schema.types.end()}}};
  const std::span<const KernelRow> rows = rows_of(target.runtime, schema);
  std::optional<std::vector<Kernel>> result;
  std::vector<const KernelRow*> last;
  for (const Release& release : releases(target.runtime)) {
    if (!has(target, release)) continue;
    std::vector<const KernelRow*> current = rows_in(rows, release);
    if (result && current == last) continue;  // most kernels are the same in all versions
    result = result ? in_both(*result, as_kernels(current)) : as_kernels(current);
    last = std::move(current);
  }
  return result.value_or(std::vector<Kernel>{});
}

}  // namespace

std::span<const Release> releases(Runtime runtime) {
  switch (runtime) {
    case Runtime::kOnnxRuntime:
      return kReleases;
    case Runtime::kOnnxRuntimeWeb:
      return kWebReleases;
    case Runtime::kOpenVino:
      return kOpenVinoReleases;
    case Runtime::kOnnx:
      return {};
  }
  return {};
}

bool has(const Target& target, const Release& release) {
  return target.oldest <= release.version && release.version <= target.newest;
}

const std::vector<Kernel>& kernels_of(const Target& target, const onnx::Schema& schema) {
  using Key = std::tuple<Runtime, int, int, const onnx::Schema*>;
  thread_local std::map<Key, std::vector<Kernel>> known;
  const Key key(target.runtime, target.oldest, target.newest, &schema);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, kernels_in_all(target, schema)).first->second;
}

std::string table_version() { return version_text(kReleases[std::size(kReleases) - 1].version); }

bool has_body(std::string_view op) { return std::ranges::binary_search(kBodies, op); }

bool takes(std::span<const onnx::TypeConstraint> types, std::string_view variable, DType dtype) {
  const auto found = std::ranges::find(types, variable, &onnx::TypeConstraint::variable);
  return found == types.end() || onnx::allows(*found, dtype);
}

}  // namespace jaxport::target
