// SPDX-License-Identifier: Apache-2.0
// The stages of the compiler, one at a time, on programs of files: make bench-core.
//
// Each turn starts from what the stage before made anew, because stages change what they get; that
// is not timed. What is written is the whole model in memory, without the disk.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "axis/graph/graph.h"
#include "axis/translate/translate.h"
#include "front/ir.h"
#include "front/text.h"
#include "lower/lower.h"
#include "onnx/ir.h"
#include "pass/pass.h"
#include "raise/engine/raise.h"
#include "target/target.h"
#include "wire/file.h"
#include "wire/wire.h"

namespace jaxport::bench {
namespace {

struct Program {
  std::string name, text;
  front::Module module;
};

Program read(const std::filesystem::path& path) {
  const wire::MappedFile file = wire::map_file(path, "program");
  Program program{path.stem(), {reinterpret_cast<const char*>(file.bytes.get()), file.size}, {}};
  program.module = front::parse(program.text, path.string());
  return program;
}

// --- what each stage makes of the program

axis::Program built(const Program& program) {
  return axis::build(program.module, program.module.functions.at(0));
}

axis::Program raised(const Program& program) {
  axis::Program made = built(program);
  raise::raise(made);
  return made;
}

onnx::Model lowered(const Program& program) {
  axis::Program made = raised(program);
  return lower::lower(made, {});
}

onnx::Model legal(const Program& program) {
  onnx::Model model = lowered(program);
  target::legalise(model, target::Target::kOnnxRuntime);
  return model;
}

onnx::Model finished(const Program& program) {
  onnx::Model model = legal(program);
  pass::run_all(model);
  onnx::name_values(model);
  return model;
}

// --- one stage

using State = benchmark::State;

void parse(State& state, const Program& program) {
  for (auto _ : state) benchmark::DoNotOptimize(front::parse(program.text, program.name));
}

void build(State& state, const Program& program) {
  for (auto _ : state) benchmark::DoNotOptimize(built(program));
}

// Times `stage` on what `before` makes.
template <class Before, class Stage>
void time_after(State& state, const Program& program, Before before, Stage stage) {
  for (auto _ : state) {
    state.PauseTiming();
    {
      auto made = before(program);
      state.ResumeTiming();
      stage(made);
      state.PauseTiming();
    }  // what was made goes, untimed
    state.ResumeTiming();
  }
}

void raise_all(State& state, const Program& program) {
  time_after(state, program, built, [](axis::Program& made) { raise::raise(made); });
}

void lower_all(State& state, const Program& program) {
  time_after(state, program, raised,
             [](axis::Program& made) { benchmark::DoNotOptimize(lower::lower(made, {})); });
}

void legalise(State& state, const Program& program) {
  time_after(state, program, lowered,
             [](onnx::Model& model) { target::legalise(model, target::Target::kOnnxRuntime); });
}

void passes(State& state, const Program& program) {
  time_after(state, program, legal, [](onnx::Model& model) { pass::run_all(model); });
}

void write(State& state, const Program& program) {
  const onnx::Model model = finished(program);
  for (auto _ : state) benchmark::DoNotOptimize(wire::to_bytes(model));
}

struct Stage {
  const char* name;
  void (*run)(State&, const Program&);
};
constexpr Stage kStages[] = {
    {"parse", parse},     {"axis", build},    {"raise", raise_all}, {"layout+emit", lower_all},
    {"target", legalise}, {"passes", passes}, {"write", write},
};

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<Program> programs;
  for (int i = 1; i < argc; ++i) programs.push_back(read(argv[i]));
  if (programs.empty()) {
    fmt::print(stderr, "usage: jaxport-bench [--benchmark_filter=…] program.jir …\n");
    return 2;
  }
  for (const Program& program : programs) {
    for (const Stage& stage : kStages) {
      benchmark::RegisterBenchmark(fmt::format("{}/{}", program.name, stage.name).c_str(),
                                   stage.run, std::cref(program))
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace jaxport::bench

int main(int argc, char** argv) {
  try {
    return jaxport::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
