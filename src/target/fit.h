// SPDX-License-Identifier: Apache-2.0
// Which versions of a runtime load a model, whoever made it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::target {

struct VersionFault;

enum class Reason : std::uint8_t {
  kTooNew,     // the opset or the IR version
  kBorder,     // an input or output of a dtype that cannot cross it
  kUnknownOp,  // which no version knows
  kKernel,
  kFault,  // the version is wrong about the node
};
struct Misfit {
  Reason reason;
  std::string what;                     // "no kernel for Max(i8, i8)", "opset 23 is too new"
  std::string where;                    // "node 'Max_1'"; "" for the whole model
  const VersionFault* fault = nullptr;  // of Reason::kFault
};
std::string to_string(const Misfit& misfit);  // "loads, but wrong: AveragePool … at node 'y'"

struct VersionFit {
  int version;
  std::vector<Misfit> misfits;  // empty: it loads the model, and no fault of it is met
};
struct Fit {
  Runtime runtime;
  std::vector<VersionFit> versions;  // oldest first
  std::vector<std::string> notes;    // what could not be checked
  // From this version on all load the model, and rightly; 0 when the newest does not.
  int needed() const;
};

// Looks each node up in the table of kernels: in bodies of control flow, and in functions with the
// dtypes of each call. A node whose dtypes cannot be told fits.
Fit fit(const onnx::Model& model, Runtime runtime);

// What keeps the newest version out that the model is not for; nullptr when there is none.
const Misfit* hindrance(const Fit& fit);

// What to do about it; empty when there is none.
std::string advice(const Fit& fit);

}  // namespace jaxport::target
