// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.h"

namespace jaxport::fuzz {

// A smaller program that still differs, with the difference of its own.
struct Find {
  front::Function function;
  Verdict verdict;
};
Find shrunk(const Checker& checker, Find find);

// The rules without which it does not differ, sorted; empty when none of them alone is to blame.
std::vector<std::string> blamed(const Checker& checker, const front::Function& function);

// The program as .jir text, with what differs and at which inputs as comments.
std::string report(const Checker& checker, const Find& find, const std::vector<std::string>& rules);

}  // namespace jaxport::fuzz
