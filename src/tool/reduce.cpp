// SPDX-License-Identifier: Apache-2.0
// jaxport reduce: a smaller case for which a command still succeeds.
#include "reduce/reduce.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "front/text.h"
#include "jaxport/error.h"
#include "support/hash.h"
#include "tool/command.h"
#include "tool/options.h"
#include "tool/session.h"
#include "tool/source.h"

namespace jaxport::tool {
namespace {

namespace fs = std::filesystem;

struct ReduceArguments {
  std::string program, command, output;
  int most_tries = 5000;
};

// A folder that is gone in the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "jaxport-reduce-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw Error("E051", fmt::format("cannot make the folder '{}'", path_))
          .help("set TMPDIR to a folder that can be written to");
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path operator/(const char* name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (out.flush()) return;
  throw Error("E051", fmt::format("cannot write '{}'", path.string()))
      .help("choose another file with -o");
}

// Runs the command on programs and remembers which were asked for.
class Judge {
 public:
  Judge(const ReduceArguments& a, const front::Module& module)
      : header_(header_of(a.program)),
        module_(module),
        path_(folder_ / "case.jir"),
        command_(command_for(a.command, path_.string())) {}

  std::string text_of(const front::Function& function) {
    module_.functions = {function};
    return header_ + front::print(module_, {.locations = false});
  }

  // Only valid programs are asked for, each once; none any more when the user interrupts.
  bool keeps(const front::Function& function) {
    if (is_interrupted_) return false;
    const std::string text = text_of(function);
    try {
      front::verify(module_);
    } catch (const Error&) {
      return false;
    }
    if (!asked_.insert(hash_text(text)).second) return false;
    return succeeds(text);
  }

 private:
  static std::string header_of(const std::string& program) {
    return case_header(options_from(read_case_arguments(program)));
  }

  static std::string command_for(std::string command, const std::string& path) {
    std::size_t place = command.find("{}");
    if (place == std::string::npos) {
      throw Error("E092", "the command of --while has no {} for the name of the file")
          .help("such as --while 'jaxport replay {} 2>&1 | grep -q JXP-E012'");
    }
    for (; place != std::string::npos; place = command.find("{}", place + path.size())) {
      command.replace(place, 2, path);
    }
    return command;
  }

  bool succeeds(const std::string& text) {
    write_text(path_, text);
    const int status = std::system(fmt::format("( {} ) >/dev/null 2>&1", command_).c_str());
    // The shell gets the signal of the terminal, not we.
    is_interrupted_ = (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) ||
                      (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::string header_;
  front::Module module_;
  TemporaryFolder folder_;
  fs::path path_;
  std::string command_;
  std::set<std::uint64_t> asked_;
  bool is_interrupted_ = false;
};

void show(const front::Function& function, int tries) {
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  fmt::print(stderr, "{}{} equations, {} inputs, {} results after {} tries{}",
             is_terminal ? "\r\033[K" : "", function.eqns.size(), function.params.size(),
             function.results.size(), tries, is_terminal ? "" : "\n");
  std::fflush(stderr);
}

std::string output_name(const ReduceArguments& a) {
  if (!a.output.empty()) return a.output;
  return fs::path(a.program).replace_extension(".small.jir").string();
}

int reduce_case(const ReduceArguments& a) {
  const front::Module module = read_program(a.program);
  const front::Function& program = module.functions.at(0);
  Judge judge(a, module);
  if (!judge.keeps(program)) {
    throw Error("E094", "the command does not succeed on the program itself")
        .help(
            "it must end with exit code 0 as long as the program shows what you look for: "
            "--while 'jaxport replay {} 2>&1 | grep -q JXP-E012'");
  }
  const reduce::Options options{
      .most_tries = a.most_tries,
      .keeps = [&](const front::Function& smaller) { return judge.keeps(smaller); },
      .on_progress = show};
  const front::Function small = reduce::reduced(program, options);
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\n");
  write_text(output_name(a), judge.text_of(small));
  fmt::print("{}: {} of {} equations\n", output_name(a), small.eqns.size(), program.eqns.size());
  return kOk;
}

}  // namespace

Run add_reduce(CLI::App& command, const PythonSide&) {
  auto a = std::make_shared<ReduceArguments>();
  command.add_option("case", a->program, "a .jir file")->required();
  command
      .add_option("--while", a->command,
                  "what the shell runs on each smaller program, whose name stands for {}; as long "
                  "as it ends with exit code 0, the program may be that small")
      ->required();
  command.add_option("-o,--output", a->output, "the file to write; by default <case>.small.jir");
  command.add_option("--max-tries", a->most_tries, "how often the command may run")
      ->check(above_zero())
      ->capture_default_str();
  return [a] { return reduce_case(*a); };
}

}  // namespace jaxport::tool
