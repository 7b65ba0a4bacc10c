// SPDX-License-Identifier: Apache-2.0
// Which versions of a runtime load a model, whoever made it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::target {

struct Misfit {
  std::string what;   // "no kernel for Max(i8, i8)", "opset 23 is too new"
  std::string where;  // "node 'Max_1'"; "" for the whole model
};
struct VersionFit {
  int version;
  std::vector<Misfit> misfits;  // empty: it loads the model
};
struct Fit {
  Runtime runtime;
  std::vector<VersionFit> versions;  // oldest first
  std::vector<std::string> notes;    // what could not be checked
  // From this version on all load the model; 0 when the newest does not.
  int needed() const;
};

// Looks each node up in the table of kernels: in bodies of control flow, and in functions with the
// dtypes of each call. A node whose dtypes cannot be told fits.
Fit fit(const onnx::Model& model, Runtime runtime);

// What to do so that older versions load it; empty when all do.
std::string advice(const Fit& fit);

}  // namespace jaxport::target
