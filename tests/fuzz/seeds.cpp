// SPDX-License-Identifier: Apache-2.0
#include "seeds.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "front/text.h"
#include "jaxport/error.h"
#include "raise/raise.h"

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

void append_folder(std::string& all, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jir") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    append(all, text.str());
  }
}

}  // namespace

front::Module seeds(bool with_golden) {
  std::string all;
  for (const raise::Rule* rule : raise::all_rules()) {
    append(all, rule->sample);
    for (std::string_view text : rule->near_misses) {
      if (with_golden) append(all, text);
    }
  }
  for (std::string_view folder : {"raise", "axis", "lower"}) {
    if (with_golden) append_folder(all, std::filesystem::path(JAXPORT_GOLDEN) / folder);
  }
  front::Module module = front::parse(all, "seeds.jir");
  // A condition that is changed may never become false.
  std::erase_if(module.functions, [](const front::Function& function) {
    return std::ranges::find(function.eqns, "while", &front::Eqn::primitive) != function.eqns.end();
  });
  return module;
}

}  // namespace jaxport::fuzz
