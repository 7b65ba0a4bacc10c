// SPDX-License-Identifier: Apache-2.0
// What a program uses and the compiler does not have, found before anything is built.
#pragma once

#include "front/ir.h"
#include "jaxport/error.h"
#include "lower/rows/user.h"

namespace jaxport::compile {

// An equation that the importer could not take apart holds the reason in place of its parameters:
// {problem = Problem(code = "E012", message = "…", help = "…")}.
constexpr std::string_view kProblem = "problem";

// Throws the reason of the first such equation that a result depends on.
void refuse_problems(const front::Module& module);

// Adds the primitives that have no lowering, in all of the program and its regions, to an error
// that ended its compilation. Those that the error's first line names are left out.
void note_missing(Error& error, const front::Module& module, int opset,
                  const lower::UserLowerings& lowerings);

}  // namespace jaxport::compile
