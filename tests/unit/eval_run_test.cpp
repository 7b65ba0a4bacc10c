// SPDX-License-Identifier: Apache-2.0
// Whole functions: symbolic dims, calls, loops, branches.
#include "eval_support.h"

namespace jaxport::eval {
namespace {

std::vector<Tensor> run_text(std::string_view text, const std::vector<Tensor>& inputs) {
  const front::Module module = front::parse(text, "test.jir");
  front::verify(module);
  return run(module.functions[0], inputs);
}

std::string run_error(std::string_view text, const std::vector<Tensor>& inputs) {
  try {
    run_text(text, inputs);
  } catch (const Error& error) {
    return error.code() + ": " + error.message();
  }
  return "no error";
}

Tensor f32(Shape shape, const std::vector<double>& values) {
  return tensor(DType::kF32, std::move(shape), values);
}

constexpr std::string_view kMean = R"(
func @mean(%x: f32[B,2*T + 1]) {
  %sum: f32[B] = reduce_sum %x {axes = (1)}
  %n: i32[] = dim_as_value {dim = 2*T + 1}
  %f: f32[] = convert_element_type %n {new_dtype = f32}
  %out: f32[B] = div %sum %f {}
  return %out
})";

TEST(EvalRun, SymbolicDimsAreBoundFromTheInputs) {
  expect_values(run_text(kMean, {f32({2, 3}, {1, 2, 3, 4, 5, 6})})[0], {2, 5});
  expect_values(run_text(kMean, {f32({0, 5}, {})})[0], {});
}

TEST(EvalRun, InputsMustFit) {
  EXPECT_EQ(run_error(kMean, {f32({2, 4}, std::vector<double>(8, 0))}),
            "E041: input 'x' is f32[2,4], expected f32[B,2*T + 1]");
  EXPECT_EQ(run_error(kMean, {tensor(DType::kI32, {1, 1}, {0})}),
            "E041: input 'x' is i32[1,1], expected f32[B,2*T + 1]");
  EXPECT_EQ(run_error(kMean, {}), "E041: function 'mean' takes 1 inputs, got 0");
}

TEST(EvalRun, OneSymbolHasOneValue) {
  EXPECT_EQ(
      run_error("func @f(%x: f32[B], %y: f32[B]) {\n return %x\n}", {f32s({1}), f32s({1, 2})}),
      "E041: input 'y' is f32[2], expected f32[B]");
}

TEST(EvalRun, ASymbolMayBeKnownOnlyThroughAnother) {
  expect_values(run_text("func @f(%x: f32[A*B], %y: f32[A]) {\n"
                         " %z: f32[A,B] = reshape %x {dimensions = none, new_sizes = (A, B)}\n"
                         " %s: f32[B] = reduce_sum %z {axes = (0)}\n return %s\n}",
                         {f32s({1, 2, 3, 4, 5, 6}), f32s({0, 0})})[0],
                {5, 7, 9});
}

TEST(EvalRun, BindingsOfTheCallerCount) {
  const front::Module module = front::parse(
      "func @f() {\n %i: i32[T] = iota {dimension = 0, dtype = i32, shape = (T)}\n return %i\n}",
      "test.jir");
  expect_values(run(module.functions[0], {}, {{"T", 3}})[0], {0, 1, 2});
  EXPECT_THROW(run(module.functions[0], {}), Error);
}

TEST(EvalRun, ConstantsAndRepeatedResults) {
  const auto results = run_text(
      "func @f(%x: f32[]) {\n %c: f32[] = constant 2.5\n %y: f32[] = mul %x %c {}\n"
      " return %y %y %c\n}",
      {f32({}, {2})});
  ASSERT_EQ(results.size(), 3u);
  expect_values(results[1], {5});
  expect_values(results[2], {2.5});
}

TEST(EvalControl, CallsRunTheirRegion) {
  const std::string_view body = "{(%p: f32[N])\n %q: f32[N] = neg %p {}\n return %q}";
  for (const auto& [primitive, name] :
       {std::pair{"jit", "jaxpr"}, std::pair{"pjit", "jaxpr"},
        std::pair{"closed_call", "call_jaxpr"}, std::pair{"core_call", "call_jaxpr"},
        std::pair{"custom_jvp_call", "call_jaxpr"}, std::pair{"custom_vjp_call", "call_jaxpr"},
        std::pair{"remat2", "jaxpr"}, std::pair{"checkpoint", "jaxpr"}}) {
    const std::string text =
        fmt::format("func @f(%x: f32[N]) {{\n %y: f32[N] = {} %x {{{} = {}}}\n return %y\n}}",
                    primitive, name, body);
    expect_values(run_text(text, {f32s({1, -2})})[0], {-1, 2});
  }
}

TEST(EvalControl, CondClampsItsIndex) {
  const std::string_view text = R"(
func @f(%i: i32[], %x: f32[]) {
  %y: f32[] = cond %i %x {branches = (
    {(%a: f32[]) %r: f32[] = neg %a {} return %r},
    {(%a: f32[]) return %a})}
  return %y
})";
  const Tensor x = f32({}, {3});
  expect_values(run_text(text, {tensor(DType::kI32, {}, {0}), x})[0], {-3});
  expect_values(run_text(text, {tensor(DType::kI32, {}, {1}), x})[0], {3});
  expect_values(run_text(text, {tensor(DType::kI32, {}, {9}), x})[0], {3});
  expect_values(run_text(text, {tensor(DType::kI32, {}, {-9}), x})[0], {-3});
}

// Doubles x until it reaches the limit; counts the steps.
constexpr std::string_view kWhile = R"(
func @f(%limit: f32[], %factor: f32[], %x: f32[]) {
  %n: i32[] = constant 0
  %steps: i32[], %y: f32[] = while %limit %factor %n %x {cond_nconsts = 1, body_nconsts = 1,
    cond_jaxpr = {(%l: f32[], %k: i32[], %v: f32[]) %b: bool[] = lt %v %l {} return %b},
    body_jaxpr = {(%f: f32[], %k: i32[], %v: f32[])
      %one: i32[] = constant 1
      %k2: i32[] = add %k %one {}
      %v2: f32[] = mul %v %f {}
      return %k2 %v2}}
  return %steps %y
})";

TEST(EvalControl, WhileRunsUntilItsConditionFails) {
  const Tensor limit = f32({}, {100}), two = f32({}, {2});
  const auto results = run_text(kWhile, {limit, two, f32({}, {1})});
  expect_values(results[0], {7});
  expect_values(results[1], {128});
  expect_values(run_text(kWhile, {limit, two, f32({}, {500})})[0], {0});
}

TEST(EvalControl, WhileWithABatchOfConditionsFreezesWhatIsDone) {
  const std::string_view text = R"(
func @f(%x: f32[3]) {
  %y: f32[3] = while %x {cond_nconsts = 0, body_nconsts = 0,
    cond_jaxpr = {(%v: f32[3]) %l: f32[] = constant 5.0 %b: bool[3] = lt %v %l {} return %b},
    body_jaxpr = {(%v: f32[3]) %w: f32[3] = add %v %v {} return %w}}
  return %y
})";
  expect_values(run_text(text, {f32s({1, 9, 3})})[0], {8, 9, 6});
}

TEST(EvalControl, CustomLinearSolveIsItsSolver) {
  const std::string_view text = R"(
func @f(%m: f32[], %s: f32[], %b: f32[]) {
  %x: f32[] = custom_linear_solve %m %s %b {
    const_lengths = LinearSolveTuple {matvec = 1, solve = 1},
    jaxprs = LinearSolveTuple {
      matvec = {(%c: f32[], %v: f32[]) %r: f32[] = mul %c %v {} return %r},
      solve = {(%c: f32[], %v: f32[]) %r: f32[] = div %v %c {} return %r}}}
  return %x
})";
  expect_values(run_text(text, {f32({}, {9}), f32({}, {2}), f32({}, {6})})[0], {3});
}

std::string scan(std::string_view reverse) {
  return fmt::format(R"(
func @f(%k: f32[], %start: f32[], %xs: f32[T]) {{
  %last: f32[], %ys: f32[T] = scan %k %start %xs {{length = T, num_consts = 1, num_carry = 1,
    reverse = {}, unroll = 1,
    jaxpr = {{(%c: f32[], %s: f32[], %x: f32[])
      %p: f32[] = mul %c %s {{}}
      %n: f32[] = add %p %x {{}}
      return %n %s}}}}
  return %last %ys
}})",
                     reverse);
}

TEST(EvalControl, ScanCarriesAndStacks) {
  const Tensor ten = f32({}, {10}), zero = f32({}, {0});
  const auto forward = run_text(scan("false"), {ten, zero, f32s({1, 2, 3})});
  expect_values(forward[0], {123});
  expect_values(forward[1], {0, 1, 12});
  const auto backward = run_text(scan("true"), {ten, zero, f32s({1, 2, 3})});
  expect_values(backward[0], {321});
  expect_values(backward[1], {32, 3, 0});
}

TEST(EvalControl, ScanOfNoStepsGivesItsStart) {
  const auto results = run_text(scan("false"), {f32({}, {10}), f32({}, {4}), f32s({})});
  expect_values(results[0], {4});
  expect_values(results[1], {});
}

TEST(EvalControl, BrokenRegionsAreErrors) {
  EXPECT_EQ(error_of("f32[] = cond %a %a {branches = ()}", {tensor(DType::kI32, {}, {0})}),
            "E031: parameter 'branches' of primitive 'cond' is not a list of functions");
  EXPECT_EQ(error_of("f32[] = jit %a", {f32({}, {0})}),
            "E031: primitive 'jit' has no parameter 'jaxpr'");
}

}  // namespace
}  // namespace jaxport::eval
