// SPDX-License-Identifier: Apache-2.0
#include "seeds.h"

#include <algorithm>

#include "front/text.h"
#include "golden.h"
#include "jaxport/error.h"
#include "raise/engine/raise.h"

namespace jaxport::fuzz {
namespace {

// What parses alone; a file of another test may be malformed on purpose.
void append(std::string& all, std::string_view text) {
  try {
    front::parse(text, "seed.jir");
    all.append(text).append("\n");
  } catch (const Error&) {
  }
}

}  // namespace

front::Module seeds(bool with_golden) {
  std::string all;
  for (const raise::Rule& rule : raise::all_rules()) {
    const golden::RuleSamples samples = golden::samples_of(rule.name);
    append(all, samples.sample);
    for (const std::string& text : samples.near_misses) {
      if (with_golden) append(all, text);
    }
  }
  for (std::string_view folder : {"raise", "axis", "lower"}) {
    if (!with_golden) break;
    for (const auto& file : golden::files_of(folder)) append(all, golden::text_of(file));
  }
  front::Module module = front::parse(all, "seeds.jir");
  // A condition that is changed may never become false.
  std::erase_if(module.functions, [](const front::Function& function) {
    return std::ranges::find(function.eqns, "while", &front::Eqn::primitive) != function.eqns.end();
  });
  return module;
}

}  // namespace jaxport::fuzz
