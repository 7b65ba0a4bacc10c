// SPDX-License-Identifier: Apache-2.0
// Random functions of one number, most of them nearly an activation: what is raised has the values
// of what was written, at and around every number in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "eval/eval.h"
#include "front/text.h"
#include "raise/engine/raise.h"

namespace jaxport::raise {
namespace {

constexpr int kPrograms = 6000;
constexpr int kLeastRaised = 1000;  // fewer: the generator has lost its power
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::ostringstream out;
  out.precision(17);
  out << value;
  const std::string digits = out.str();
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

// Writes one function of %x.
class Writer {
 public:
  Writer(unsigned seed, bool is_double) : engine_(seed), is_double_(is_double) {}

  std::string written(std::size_t points) {
    size_ = std::to_string(points);
    const std::string result = function(below(3), "x");
    return "func @f(%x: " + float_type() + ") -> (%" + result + ") {\n" + lines_ + "  return %" +
           result + "\n}";
  }
  const std::vector<double>& literals() const { return literals_; }
  // Adding or a transcendental function: an absolute error of a few roundings.
  bool has_cancellation() const { return has_cancellation_; }

 private:
  using Name = std::string;

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  bool chance(int percent) { return below(100) < percent; }
  std::string dtype() const { return is_double_ ? "f64" : "f32"; }
  std::string float_type() const { return dtype() + "[" + size_ + "]"; }

  double near_miss(double value) {
    switch (below(8)) {
      case 0:
        return value * 1.001;
      case 1:
        return value * (1 + 1e-5);
      case 2:
        return value + (chance(50) ? 1e-3 : -1e-3);
      case 3:
        return value + (chance(50) ? 1e-20 : -1e-20);
      case 4:
        return -value;
      case 5:
        return value + (chance(50) ? 0.5 : -0.5);
      case 6:
        return value == 0 ? 1e-30 : 1 / value;
      default:
        return std::nextafter(static_cast<float>(value), 10.0F);
    }
  }

  double rounded(double value) const {
    return is_double_ ? value : static_cast<double>(static_cast<float>(value));
  }

  // The number, or now and then another.
  Name literal(double value) {
    if (chance(4)) value = near_miss(value);
    return exact(value);
  }
  Name exact(double value) {
    value = rounded(value);
    literals_.push_back(value);
    return line(dtype() + "[]", "constant " + text(value));
  }
  double anything() {
    constexpr double kNumbers[] = {0,   1,   -1,  0.5, 6,    3,    -3,   0.7,  1.5,       0.1,
                                   0.2, 2.0, 1e6, -20, 1e-7, 1e30, 1e-9, -1e9, kInfinity, 8};
    return kNumbers[below(std::size(kNumbers))];
  }

  Name line(const std::string& type, const std::string& operation) {
    const Name name = "v" + std::to_string(next_++);
    lines_ += "  %" + name + ": " + type + " = " + operation + "\n";
    return name;
  }
  Name apply(const std::string& op, const Name& a) {
    has_cancellation_ |= op != "abs" && op != "neg" && op != "copy";
    return line(float_type(), op + " %" + a);
  }
  Name apply(const std::string& op, const Name& a, const Name& b) {
    has_cancellation_ |= op == "add" || op == "sub";
    return line(float_type(), op + " %" + a + " %" + b);
  }
  Name broadcast(const Name& scalar) {
    return line(float_type(), "broadcast_in_dim %" + scalar + " {shape = (" + size_ +
                                  "), broadcast_dimensions = ()}");
  }
  Name test(const std::string& op, const Name& a, const Name& b) {
    return line("bool[" + size_ + "]", op + " %" + a + " %" + b);
  }
  Name where(const Name& condition, const Name& yes, const Name& no) {
    return line(float_type(), "select_n %" + condition + " %" + no + " %" + yes);
  }
  std::string comparison() {
    constexpr const char* kNames[] = {"gt", "gt", "ge", "lt", "le", "eq", "ne"};
    return kNames[below(std::size(kNames))];
  }

  // A function of x around an activation.
  Name function(int depth, const Name& x) {
    if (depth == 0) return activation(x);
    return chance(50) ? function(depth - 1, step(x)) : step(function(depth - 1, x));
  }

  // What may stand before or after an activation.
  Name step(const Name& x) {
    const double c = anything();
    switch (below(5)) {
      case 0:
        return bounded(x, c);
      case 1:
        return chosen(x, c);
      case 2:
        return scaled(x, chance(50) ? c : 1);
      case 3:
        return odd_step(x, c);
      default:
        return apply("copy", x);
    }
  }
  Name bounded(const Name& x, double c) {
    switch (below(5)) {
      case 0:
        return apply("max", x, exact(c));
      case 1:
        return apply("min", x, exact(c));
      case 2:
        return line(float_type(), "clamp %" + exact(c) + " %" + x + " %" + exact(anything()));
      case 3:
        return apply("max", x, apply("mul", x, exact(c)));
      default:
        return apply("abs", x);
    }
  }
  Name chosen(const Name& x, double c) {
    switch (below(5)) {
      case 0:
        return where(test(comparison(), x, exact(c)), x, broadcast(exact(anything())));
      case 1:
        return where(test(comparison(), x, exact(c)), broadcast(exact(anything())), x);
      case 2:
        return where(test(comparison(), "x", exact(c)), x, apply("neg", x));
      case 3:
        return where(test(comparison(), scaled(x, 3), exact(c)), x, broadcast(exact(0)));
      default:
        return where(test("ne", x, x), x, apply("copy", x));
    }
  }
  Name scaled(const Name& x, double c) {
    constexpr const char* kNames[] = {"mul", "div", "add", "sub"};
    return apply(kNames[below(4)], x, exact(c));
  }
  Name odd_step(const Name& x, double c) {
    switch (below(6)) {
      case 0:
        return apply("mul", x, converted(converted(x, "bool"), dtype()));
      case 1:
        return converted(converted(x, "i32"), dtype());
      case 2:
        return converted(converted(x, "bf16"), dtype());
      case 3:
        return apply("mul", apply("abs", x), apply("sign", x));
      case 4:
        return apply("add", x, bump(c));
      default:
        return apply("floor", x);
    }
  }
  Name converted(const Name& x, const std::string& to) {
    return line(to + "[" + size_ + "]", "convert_element_type %" + x + " {new_dtype = " + to + "}");
  }
  // exp(-(1000 (x - c))^2), which is zero but for a few x
  Name bump(double c) {
    const Name near = apply("mul", apply("sub", "x", exact(c)), exact(1000));
    return apply("exp", apply("neg", apply("mul", near, near)));
  }

  Name activation(const Name& x) {
    switch (below(14)) {
      case 0:
        return apply("max", x, literal(0));
      case 1:
        return where(test("gt", x, literal(0.7)), x, broadcast(literal(0)));
      case 2:
        return where(test("ge", x, literal(0)), x, apply("mul", x, literal(0.1)));
      case 3:
        return elu(x, literal(0.5));
      case 4:
        return celu(x, 1.5);
      case 5:
        return apply("mul", x, apply("logistic", x));
      case 6:
        return apply("div", literal(1), apply("add", apply("exp", apply("neg", x)), literal(1)));
      case 7:
        return softplus(x);
      case 8:
        return apply("mul", x, apply("tanh", softplus(x)));
      case 9:
        return line(float_type(), "clamp %" + literal(0) + " %" + x + " %" + literal(6));
      case 10:
        return hard_sigmoid(x);
      case 11:
        return apply("mul", x, hard_sigmoid(x));
      case 12:
        return apply("mul", literal(1.0507009873554805), elu(x, literal(1.6732632423543772)));
      default:
        return apply("div", x, apply("add", apply("abs", x), literal(1)));
    }
  }
  Name elu(const Name& x, const Name& alpha) {
    const Name below_zero = apply("mul", apply("expm1", apply("min", x, literal(0))), alpha);
    return where(test("gt", x, literal(0)), x, below_zero);
  }
  Name celu(const Name& x, double alpha) {
    const Name inner = apply("div", apply("min", x, literal(0)), literal(alpha));
    const Name below_zero = apply("mul", apply("expm1", inner), literal(alpha));
    return apply("add", apply("max", x, literal(0)), below_zero);
  }
  Name softplus(const Name& x) {
    if (chance(50)) return apply("log", apply("add", apply("exp", x), literal(1)));
    const Name small = apply("log1p", apply("exp", apply("neg", apply("abs", x))));
    return apply("add", apply("max", x, literal(0)), small);
  }
  Name hard_sigmoid(const Name& x) {
    const Name up = apply("add", x, literal(3));
    const Name mid = line(float_type(), "clamp %" + literal(0) + " %" + up + " %" + literal(6));
    return apply("div", mid, literal(6));
  }

  std::mt19937 engine_;
  bool is_double_;
  std::string size_, lines_;
  std::vector<double> literals_;
  int next_ = 0;
  bool has_cancellation_ = false;
};

// A fixed grid, and the numbers of the program with what they may make together, each with its
// neighbours.
constexpr std::size_t kPoints = 6000;
std::vector<double> points(const std::vector<double>& literals, bool is_double) {
  std::vector<double> centres{0, 1, 0.5, 3, 6, 0.7};
  for (double a : literals) {
    centres.push_back(a);
    for (double b : literals) {
      centres.insert(centres.end(), {a - b, a + b, a / b, a * b});
    }
  }
  std::vector<double> result{0, -0.0, kInfinity, -kInfinity, std::nan("")};
  for (int i = -600; i <= 600; ++i) result.push_back(i / 50.0);
  for (int i = -44; i <= 37; ++i) result.insert(result.end(), {std::pow(10, i), -std::pow(10, i)});
  for (double centre : centres) {
    for (double x : {centre, -centre}) {
      const auto narrow = static_cast<float>(x);
      const double up = is_double ? std::nextafter(x, kInfinity) : std::nextafter(narrow, INFINITY);
      const double down =
          is_double ? std::nextafter(x, -kInfinity) : std::nextafter(narrow, -INFINITY);
      result.insert(result.end(), {x, up, down, x * 1.000001, x * 0.999999, x * 1.001, x * 0.999});
    }
  }
  result.resize(kPoints, 2.5);
  return result;
}

// The result is the one raised node. Elsewhere what follows may make much of a rounding.
bool is_one_activation(const axis::Program& program) {
  const auto nodes = axis::topological(program);
  return is_raised(*program.outputs[0].use.node) &&
         std::ranges::count_if(nodes, [](const axis::Node* node) { return is_raised(*node); }) == 1;
}

// How often the values differ.
int count_differences(const Tensor& x, const Tensor& got, const Tensor& want, const Writer& writer,
                      bool is_double) {
  const double relative = is_double ? 1e-11 : 1e-4;
  const double least = is_double ? std::numeric_limits<double>::min()
                                 : static_cast<double>(std::numeric_limits<float>::min());
  const double absolute = writer.has_cancellation() ? (is_double ? 1e-13 : 1e-5) : least;
  int count = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double a = got.at(i), b = want.at(i), at = x.at(i);
    // A naive spelling overflows where the activation does not.
    if (std::isfinite(at) && std::abs(at) > 80 && std::isfinite(a) && !std::isfinite(b)) continue;
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b)) ||
                         std::abs(a - b) <= absolute + relative * std::abs(b);
    if (is_same) continue;
    if (++count == 1) ADD_FAILURE() << "at " << at << ": " << a << " instead of " << b;
  }
  return count;
}

class RandomFunctions : public testing::TestWithParam<bool> {};

TEST_P(RandomFunctions, keep_their_values) {
  const bool is_double = GetParam();
  int raised = 0, wrong = 0;
  for (unsigned seed = 0; seed < kPrograms && wrong < 5; ++seed) {
    Writer writer(seed, is_double);
    const std::string source = writer.written(kPoints);
    const front::Module module = front::parse(source, "random.jir");
    axis::Program program = axis::build(module, module.functions.front());
    raise(program);
    if (!is_one_activation(program)) continue;
    ++raised;
    MutableTensor wide = allocate(DType::kF64, {kPoints});
    std::ranges::copy(points(writer.literals(), is_double), wide.as<double>());
    const Tensor x = eval::cast(wide.tensor, is_double ? DType::kF64 : DType::kF32);
    const std::vector<Tensor> inputs{x};
    const Tensor want = eval::run(module.functions.front(), inputs)[0];
    const Tensor got = axis::evaluate(program, inputs, expand)[0];
    if (count_differences(x, got, want, writer, is_double) == 0) continue;
    ++wrong;
    ADD_FAILURE() << "seed " << seed << '\n' << source << '\n' << axis::print(program);
  }
  EXPECT_GE(raised, kLeastRaised);
  std::cout << raised << " raised\n";
}

INSTANTIATE_TEST_SUITE_P(, RandomFunctions, testing::Bool(),
                         [](const auto& is_double) { return is_double.param ? "f64" : "f32"; });

}  // namespace
}  // namespace jaxport::raise
