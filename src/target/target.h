// SPDX-License-Identifier: Apache-2.0
// What a model must respect to run: the ONNX specification alone, or the kernels of a runtime too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "onnx/ir.h"
#include "support/preferences.h"

namespace jaxport::target {

enum class Runtime : std::uint8_t {
  kOnnxRuntime,     // ops and dtypes that ONNX Runtime has kernels for on the CPU
  kOnnxRuntimeWeb,  // the same kernels in WebAssembly; JavaScript has fewer dtypes
  kOpenVino,        // what its plugin for the CPU computes
  kOnnx,            // whatever the schemas of the opset allow
};
// Those with a table of kernels.
inline constexpr Runtime kRuntimes[] = {Runtime::kOnnxRuntime, Runtime::kOnnxRuntimeWeb,
                                        Runtime::kOpenVino};
std::string_view name_of(Runtime runtime);   // as in a target: "onnxruntime-web"
std::string_view title_of(Runtime runtime);  // as in a message: "ONNX Runtime Web"

// Versions of a runtime are numbers: 131 is 1.31, 202604 is 2026.4.
constexpr int kOpen = 999999;  // no version is newer

struct Target {
  Runtime runtime = Runtime::kOnnxRuntime;
  int oldest = 0;  // 0: the oldest that runs the opset of the model
  int newest = kOpen;
  friend bool operator==(const Target&, const Target&) = default;
  static const Target kOnnxRuntime, kOnnx;
};
inline constexpr Target Target::kOnnxRuntime{};
inline constexpr Target Target::kOnnx{.runtime = Runtime::kOnnx};

// "onnxruntime", "onnxruntime>=1.28", "onnxruntime==1.20", the same of "onnxruntime-web" and
// "openvino", and "onnx"; else E079.
Target target_from_name(std::string_view name);
std::string version_text(int version);  // "1.31"

// The target with its oldest version. E011: the target has a version that does not run the opset.
Target for_opset(const Target& target, int opset);
// The newest opset that all its versions run, and the newest version of the ONNX IR.
int newest_opset(const Target& target);
int newest_ir_version(const Target& target);
// What a model needs that was made for the target: "onnxruntime>=1.23", "onnx opset 23".
std::string requirement(const Target& target, int opset);

const Preferences& preferences(const Target& target);  // see support/preferences.h

// Whether the target computes `op` at `opset` with all its operands in `dtype`, but for indices and
// the like, which the op never takes in it.
bool runs(const Target& target, std::string_view op, int opset, DType dtype);

// Rewrites each node whose dtypes the target has no kernel for: its operands are widened, the op
// runs in a dtype that the target has, the result is narrowed; or the op is composed of others.
// Results are those of the dtype that the node had. Inputs and outputs of the model keep theirs,
// but for dtypes that cannot cross the border of ONNX Runtime Web, which cross it as f32
// (web_border.h). Error E013: there is neither a wider dtype nor a composition. A target that names
// no version loses the old ones that have neither. Returns the target that is left.
Target legalise(onnx::Model& model, const Target& target);

// ONNX Runtime rewrites models when it loads them, and some of its rewrites are wrong. The patterns
// that they start from are written in another way, and so is what OpenVINO reads wrongly; what
// becomes dead stays. Comes after all passes, which might make such a pattern. Returns whether
// anything changed.
bool avoid_faults(onnx::Model& model, const Target& target);

}  // namespace jaxport::target
