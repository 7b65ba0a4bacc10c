// SPDX-License-Identifier: Apache-2.0
// Searches for programs that compute something else when they are raised: mutates the samples of
// all rules, evaluates both forms at hostile values, and shrinks what differs to a .jir file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "check.h"
#include "edit.h"
#include "fault.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "mutate.h"
#include "seeds.h"
#include "shrink.h"

namespace jaxport::fuzz {
namespace {

struct Arguments {
  std::uint64_t seed = 1;
  std::size_t programs = 0;  // 0: no limit
  double minutes = 0;        // 0: no limit
  std::size_t finds = 10;
  std::string out;
  std::string seeds = "all";
  bool faults = false;
  std::vector<std::string> files;
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Programs to mutate: the seeds, and mutants, as often with each kind of raised node.
class Pool {
 public:
  explicit Pool(const std::vector<front::Function>& seeds) : seeds_(seeds) {}

  const front::Function& pick(Rng& rng) const {
    if (groups_.empty() || rng.one_in(4)) return rng.of(seeds_);
    // Nodes with many premises rather than activations.
    const Group& group =
        large_.empty() || rng.one_in(3) ? rng.of(groups_) : groups_[rng.of(large_)];
    const bool from_seed = group.mutants.empty() || (!group.seeds.empty() && rng.coin());
    return rng.of(from_seed ? group.seeds : group.mutants);
  }
  const std::vector<front::Function>& seeds() const { return seeds_; }

  void offer(const front::Function& function, const Verdict& verdict, Rng& rng) {
    if (verdict.raised.empty() || function.eqns.size() > kMostEquations) return;
    if (!seen_.insert(shape_of_program(function)).second) return;
    for (const std::string& name : verdict.raised) add(name, function, rng);
  }

  // A seed in which this is raised: without it all mutants descend from the first ones.
  void add_seed(const std::string& name, const front::Function& function) {
    group_for(name).seeds.push_back(function);
  }

 private:
  struct Group {
    std::vector<front::Function> seeds, mutants;
  };

  void add(const std::string& name, const front::Function& function, Rng& rng) {
    std::vector<front::Function>& mutants = group_for(name).mutants;
    if (mutants.size() < kMostOfOneGroup) {
      mutants.push_back(function);
    } else {
      rng.of(mutants) = function;
    }
  }

  Group& group_for(const std::string& name) {
    const auto [entry, is_new] = group_of_.try_emplace(name, groups_.size());
    if (is_new) {
      if (std::ranges::find(kLarge, name) != std::end(kLarge)) large_.push_back(groups_.size());
      groups_.emplace_back();
    }
    return groups_[entry->second];
  }

  static constexpr std::size_t kMostEquations = 40, kMostOfOneGroup = 200;
  static constexpr std::string_view kLarge[] = {"attention", "layer_norm", "rms_norm", "softmax"};
  const std::vector<front::Function>& seeds_;
  std::vector<Group> groups_;
  std::vector<std::size_t> large_;  // of the groups
  std::map<std::string, std::size_t> group_of_;
  std::set<std::uint64_t> seen_;
};

struct Counts {
  std::size_t programs = 0, valid = 0, raised = 0, differing = 0;
  std::map<std::string, std::size_t> by_name;
};

class Search {
 public:
  Search(const Arguments& arguments, const front::Module& seeds, Stage stage)
      : arguments_(arguments),
        checker_(seeds, std::move(stage)),
        pool_(seeds.functions),
        rng_(arguments.seed) {
    if (arguments.faults) return;  // their nodes have no group worth it
    for (const front::Function& seed : seeds.functions) {
      for (const std::string& name : checked(seed).raised) pool_.add_seed(name, seed);
    }
  }

  // Returns the number of distinct finds.
  std::size_t run() {
    while (!is_over()) step();
    progress("\n");
    return found_.size();
  }
  const Counts& counts() const { return counts_; }

 private:
  bool is_over() {
    const double seconds = seconds_since(start_);
    if (seconds > reported_ + 5) {
      reported_ = seconds;
      progress("\r");
    }
    return found_.size() >= arguments_.finds ||
           (arguments_.programs > 0 && counts_.programs >= arguments_.programs) ||
           (arguments_.minutes > 0 && seconds > 60 * arguments_.minutes);
  }

  void progress(const char* end) const {
    const double seconds = seconds_since(start_);
    fmt::print(stderr, "{:.0f} s: {} programs ({:.0f}/s), {} valid, {} raised, {} finds{}", seconds,
               counts_.programs, static_cast<double>(counts_.programs) / seconds, counts_.valid,
               counts_.raised, found_.size(), end);
    std::fflush(stderr);
  }

  void step() {
    const front::Function function = mutated(pool_.pick(rng_), pool_.seeds(), rng_);
    ++counts_.programs;
    Verdict verdict = checked(function);
    if (!verdict.is_valid) return;
    ++counts_.valid;
    counts_.raised += verdict.raised.empty() ? 0 : 1;
    for (const std::string& name : verdict.raised) ++counts_.by_name[name];
    if (!verdict.difference) return pool_.offer(function, verdict, rng_);
    ++counts_.differing;
    keep({function, std::move(verdict)});
  }

  // A program that ends the check is shown, and the search goes on.
  Verdict checked(const front::Function& function) const {
    try {
      return checker_.check(function);
    } catch (const std::exception& error) {
      fmt::print("the check throws {}\n{}\n", error.what(),
                 front::print(checker_.module_of(function)));
      return {};
    }
  }

  void keep(Find find) {
    // A fault that is known is not shrunk again and again: what is raised, and at which values.
    std::vector<std::string> key = find.verdict.raised;
    key.push_back(find.verdict.difference->what.substr(0, find.verdict.difference->what.find(':')));
    if (++met_[key] > kMostOfOneKind) return;
    find = shrunk(checker_, std::move(find));
    if (!found_.insert(shape_of_program(find.function)).second) return;
    const auto rules =
        arguments_.faults ? std::vector<std::string>{} : blamed(checker_, find.function);
    const std::string text = report(checker_, find, rules);
    fmt::print("find {} after {} programs, {:.0f} s\n{}\n", found_.size(), counts_.programs,
               seconds_since(start_), text);
    std::fflush(stdout);
    if (arguments_.out.empty()) return;
    std::filesystem::create_directories(arguments_.out);
    std::ofstream(fmt::format("{}/find_{}.jir", arguments_.out, found_.size())) << text;
  }

  static constexpr std::size_t kMostOfOneKind = 8;
  const Arguments& arguments_;
  Checker checker_;
  Pool pool_;
  Rng rng_;
  Counts counts_;
  std::map<std::vector<std::string>, std::size_t> met_;
  std::set<std::uint64_t> found_;
  Clock::time_point start_ = Clock::now();
  double reported_ = 0;
};

void print_counts(const Counts& counts) {
  fmt::print("raised:");
  for (const auto& [name, count] : counts.by_name) fmt::print(" {} {}", name, count);
  fmt::print("\n");
}

int search(const Arguments& arguments) {
  const front::Module all = seeds(arguments.seeds == "all");
  Search search(arguments, all, {});
  const std::size_t finds = search.run();
  print_counts(search.counts());
  return finds == 0 ? 0 : 1;
}

// Each wrong rule alone, within the limits of one search.
int search_faults(Arguments arguments) {
  const front::Module all = seeds(arguments.seeds == "all");
  arguments.finds = 1;
  int missed = 0;
  for (const raise::Rule& fault : faulty_rules()) {
    const raise::Rules passes[] = {{&fault, 1}};
    Search search(arguments, all, {.options = {}, .passes = passes, .every_kind = true});
    const bool found = search.run() > 0;
    fmt::print("{}: {} after {} programs\n", fault.name, found ? "found" : "NOT FOUND",
               search.counts().programs);
    missed += found ? 0 : 1;
  }
  return missed == 0 ? 0 : 1;
}

// Says of each function of a file whether it differs.
int check_files(const Arguments& arguments) {
  bool differs = false;
  for (const std::string& file : arguments.files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    const front::Module module = front::parse(text.str(), file);
    const Checker checker(module, {});
    for (const front::Function& function : module.functions) {
      const Verdict verdict = checker.check(function);
      fmt::print("{}: {}; raised: {}\n", function.name,
                 !verdict.is_valid    ? "cannot be evaluated"
                 : verdict.difference ? verdict.difference->what
                                      : "the same",
                 fmt::join(verdict.raised, ", "));
      differs |= verdict.difference.has_value();
    }
  }
  return differs ? 1 : 0;
}

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Searches for programs that compute something else when they are raised."};
  app.add_option("files", arguments.files, "check these .jir files instead");
  app.add_option("--seed", arguments.seed, "of all random choices");
  app.add_option("--programs", arguments.programs, "stop after so many");
  app.add_option("--minutes", arguments.minutes, "stop after so long");
  app.add_option("--finds", arguments.finds, "stop after so many different finds");
  app.add_option("--out", arguments.out, "folder for the .jir files of finds");
  app.add_option("--seeds", arguments.seeds, "what is mutated: samples of rules, or text tests too")
      ->check(CLI::IsMember({"samples", "all"}));
  app.add_flag("--faults", arguments.faults, "search with each of the wrong rules instead");
  CLI11_PARSE(app, argc, argv);
  if (!arguments.files.empty()) return check_files(arguments);
  return arguments.faults ? search_faults(arguments) : search(arguments);
}

}  // namespace
}  // namespace jaxport::fuzz

int main(int argc, char** argv) {
  try {
    return jaxport::fuzz::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
