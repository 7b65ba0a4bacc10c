// SPDX-License-Identifier: Apache-2.0
// Random programs: the axis graph computes what the front IR computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "axis/graph/graph.h"
#include "eval/eval.h"
#include "front/text.h"

namespace jaxport::axis {
namespace {

using front::Attr;

Attr list(const Ints& values) {
  front::List items;
  for (std::int64_t value : values) items.push_back({value});
  return {items};
}

// Writes functions of random equations over values of at most 200 elements.
class ProgramWriter {
 public:
  explicit ProgramWriter(unsigned seed) : engine_(seed) {
    module_.functions.emplace_back();
    function().name = "random";
  }

  front::Module write(int equations) {
    for (int i = 0; i < 3; ++i) {
      values_.push_back(function().add_value(type(random_shape()), ""));
      function().params.push_back(values_.back());
    }
    while (std::ssize(function().eqns) < equations) add_equation();
    for (int i = 0; i < 3; ++i) function().results.push_back(values_[values_.size() - 1 - i]);
    return module_;
  }

 private:
  front::Function& function() { return module_.functions[0]; }
  static front::Type type(const Ints& shape, DType dtype = DType::kF32) {
    return {dtype, Dims(shape.begin(), shape.end())};
  }
  int below(std::int64_t count) {
    return static_cast<int>(engine_() % static_cast<std::uint64_t>(count));
  }
  bool coin() { return below(2) == 0; }
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(std::ssize(items))];
  }

  Ints random_shape() {
    static const std::vector<std::int64_t> kSizes{1, 2, 2, 3, 4, 6};
    Ints shape(1 + below(3));
    for (auto& size : shape) size = below(60) == 0 ? 0 : one_of(kSizes);
    return shape;
  }

  Ints shape_of(front::ValueId id) {
    Ints shape;
    for (const Dim& size : function().type(id).shape) shape.push_back(size.value());
    return shape;
  }
  front::ValueId any() {
    // Mostly recent values, so that programs are deep.
    const auto recent = std::min<std::size_t>(values_.size(), 6);
    return coin() ? values_[values_.size() - 1 - below(recent)] : one_of(values_);
  }

  front::ValueId emit(std::string primitive, std::vector<front::ValueId> in, const Ints& shape,
                      front::Attrs attrs = {}) {
    front::Eqn eqn;
    eqn.primitive = std::move(primitive);
    eqn.in = std::move(in);
    eqn.out = {function().add_value(type(shape), "")};
    eqn.attrs = std::move(attrs);
    const front::ValueId out = eqn.out[0];
    function().eqns.push_back(std::move(eqn));
    values_.push_back(out);
    return out;
  }

  void add_equation() {
    using Write = void (ProgramWriter::*)();
    static constexpr Write kWriters[] = {
        &ProgramWriter::transpose,   &ProgramWriter::reshape, &ProgramWriter::reshape,
        &ProgramWriter::broadcast,   &ProgramWriter::slice,   &ProgramWriter::slice,
        &ProgramWriter::concatenate, &ProgramWriter::unary,   &ProgramWriter::binary,
        &ProgramWriter::binary,      &ProgramWriter::reduce,  &ProgramWriter::dot,
        &ProgramWriter::constant,    &ProgramWriter::tile,    &ProgramWriter::rev,
        &ProgramWriter::split,
    };
    (this->*kWriters[below(std::ssize(kWriters))])();
  }

  void transpose() {
    const auto x = any();
    const Ints shape = shape_of(x);
    Ints permutation(shape.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::ranges::shuffle(permutation, engine_);
    Ints result;
    for (auto dim : permutation) result.push_back(shape[dim]);
    emit("transpose", {x}, result, {{"permutation", list(permutation)}});
  }

  Ints refactored(std::int64_t count) {
    if (count == 0) return coin() ? Ints{0} : Ints{3, 0};
    Ints shape;
    for (std::int64_t factor = 2; count > 1; ++factor) {
      while (count % factor == 0) {
        shape.push_back(factor);
        count /= factor;
      }
    }
    std::ranges::shuffle(shape, engine_);
    Ints merged;
    for (std::int64_t factor : shape) {
      if (!merged.empty() && coin()) {
        merged.back() *= factor;
      } else {
        merged.push_back(factor);
      }
    }
    if (coin()) merged.insert(merged.begin() + below(std::ssize(merged) + 1), 1);
    return merged;
  }

  void reshape() { reshape_to(any()); }
  front::ValueId reshape_to(front::ValueId x) {
    const Ints shape = refactored(element_count(shape_of(x)));
    if (shape.size() > 5) return x;
    return emit("reshape", {x}, shape,
                {{"dimensions", Attr{front::None{}}}, {"new_sizes", list(shape)}});
  }

  void broadcast() {
    const auto x = any();
    Ints shape = shape_of(x), dims(shape.size());
    if (element_count(shape) > 40 || shape.size() > 3) return;
    std::iota(dims.begin(), dims.end(), 0);
    for (auto& size : shape) {
      if (size == 1 && coin()) size = 2 + below(2);
    }
    const int at = below(std::ssize(shape) + 1);
    shape.insert(shape.begin() + at, 1 + below(3));
    for (auto& dim : dims) dim += dim >= at ? 1 : 0;
    emit("broadcast_in_dim", {x}, shape,
         {{"broadcast_dimensions", list(dims)}, {"shape", list(shape)}});
  }

  void slice() {
    const auto x = any();
    const Ints shape = shape_of(x);
    Ints starts, limits, strides, result;
    for (std::int64_t size : shape) {
      const std::int64_t start = below(size == 0 || below(30) == 0 ? size + 1 : size);
      const std::int64_t stride = coin() ? 1 : 1 + below(3);
      const std::int64_t limit =
          coin() ? size : std::min(size, start + 1 + below(size - start + 1));
      starts.push_back(start);
      limits.push_back(limit);
      strides.push_back(stride);
      result.push_back((limit - start + stride - 1) / stride);
    }
    emit("slice", {x}, result,
         {{"limit_indices", list(limits)},
          {"start_indices", list(starts)},
          {"strides", list(strides)}});
  }

  void split() {
    const auto x = any();
    const Ints shape = shape_of(x);
    if (shape.empty()) return;
    const int axis = below(std::ssize(shape));
    if (shape[axis] < 2) return;
    const std::int64_t first = 1 + below(shape[axis] - 1);
    front::Eqn eqn;
    eqn.primitive = "split";
    eqn.in = {x};
    eqn.attrs = {{"axis", Attr{std::int64_t{axis}}}, {"sizes", list({first, shape[axis] - first})}};
    for (std::int64_t size : {first, shape[axis] - first}) {
      Ints part = shape;
      part[axis] = size;
      eqn.out.push_back(function().add_value(type(part), ""));
      values_.push_back(eqn.out.back());
    }
    const Ints pieces(eqn.out.begin(), eqn.out.end());
    function().eqns.push_back(std::move(eqn));
    if (coin()) join({values_[values_.size() - 2], values_.back()}, axis);
  }

  void concatenate() {
    const auto x = any();
    const Ints shape = shape_of(x);
    if (shape.empty() || element_count(shape) > 60) return;
    const int axis = below(std::ssize(shape));
    std::vector<front::ValueId> pieces{x};
    for (const auto other : values_) {
      Ints same = shape_of(other);
      if (same.size() != shape.size()) continue;
      same[axis] = shape[axis];
      if (same == shape && coin() && pieces.size() < 3) pieces.push_back(other);
    }
    join(pieces, axis);
  }

  void join(const std::vector<front::ValueId>& pieces, int axis) {
    Ints result = shape_of(pieces[0]);
    result[axis] = 0;
    for (const auto piece : pieces) result[axis] += shape_of(piece)[axis];
    if (element_count(result) > 200) return;
    emit("concatenate", pieces, result, {{"dimension", Attr{std::int64_t{axis}}}});
  }

  void unary() {
    const auto x = any();
    emit(coin() ? "neg" : "tanh", {x}, shape_of(x));
  }

  void binary() {
    const auto x = any();
    const Ints shape = shape_of(x);
    std::vector<front::ValueId> partners;
    for (const auto other : values_) {
      if (shape_of(other) == shape) partners.push_back(other);
    }
    static const std::vector<std::string> kNames{"add", "mul", "sub", "max"};
    emit(one_of(kNames), {x, one_of(partners)}, shape);
  }

  void reduce() {
    const auto x = any();
    const Ints shape = shape_of(x);
    Ints axes, kept;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (below(3) == 0) {
        axes.push_back(static_cast<std::int64_t>(dim));
      } else {
        kept.push_back(shape[dim]);
      }
    }
    static const std::vector<std::string> kNames{"reduce_sum", "reduce_max", "reduce_min"};
    emit(one_of(kNames), {x}, kept, {{"axes", list(axes)}});
  }

  void dot() {
    const auto x = any(), y = any();
    const Ints left = shape_of(x), right = shape_of(y);
    Ints contract[2], batch[2], batched;
    std::vector<bool> used_left(left.size()), used_right(right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < right.size(); ++j) {
        if (used_left[i] || used_right[j] || left[i] != right[j] || below(3) == 0) continue;
        used_left[i] = used_right[j] = true;
        Ints* side = coin() ? contract : batch;
        side[0].push_back(static_cast<std::int64_t>(i));
        side[1].push_back(static_cast<std::int64_t>(j));
      }
    }
    Ints result;
    for (auto dim : batch[0]) result.push_back(left[dim]);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!used_left[i]) result.push_back(left[i]);
    }
    for (std::size_t j = 0; j < right.size(); ++j) {
      if (!used_right[j]) result.push_back(right[j]);
    }
    if (element_count(result) > 100) return;
    const Attr numbers{front::List{Attr{front::List{list(contract[0]), list(contract[1])}},
                                   Attr{front::List{list(batch[0]), list(batch[1])}}}};
    const auto product = emit("dot_general", {x, y}, result,
                              {{"dimension_numbers", numbers},
                               {"precision", Attr{front::None{}}},
                               {"preferred_element_type", Attr{DType::kF32}}});
    emit("tanh", {product}, result);  // keeps magnitudes small
  }

  void constant() {
    const Ints shape = random_shape();
    MutableTensor tensor = allocate(DType::kF32, shape);
    const bool uniform = coin();
    for (std::int64_t i = 0; i < tensor.tensor.size(); ++i) {
      tensor.as<float>()[i] = uniform ? 0.5f : static_cast<float>(below(9) - 4) / 4;
    }
    const auto id = function().add_value(type(shape), "");
    function().constants.push_back({id, tensor.tensor, ""});
    values_.push_back(id);
  }

  void tile() {
    const auto x = any();
    Ints shape = shape_of(x), reps(shape.size(), 1);
    if (shape.empty() || element_count(shape) > 40) return;
    const int dim = below(std::ssize(shape));
    reps[dim] = 2 + below(2);
    shape[dim] *= reps[dim];
    emit("tile", {x}, shape, {{"reps", list(reps)}});
  }

  void rev() {
    const auto x = any();
    const Ints shape = shape_of(x);
    if (shape.empty()) return;
    emit("rev", {x}, shape, {{"dimensions", list({below(std::ssize(shape))})}});
  }

  std::mt19937 engine_;
  front::Module module_;
  std::vector<front::ValueId> values_;
};

std::vector<Tensor> random_inputs(const front::Function& function, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<Tensor> inputs;
  for (const auto id : function.params) {
    Shape shape;
    for (const Dim& size : function.type(id).shape) shape.push_back(size.value());
    MutableTensor tensor = allocate(DType::kF32, shape);
    for (std::int64_t i = 0; i < tensor.tensor.size(); ++i) tensor.as<float>()[i] = uniform(engine);
    inputs.push_back(tensor.tensor);
  }
  return inputs;
}

void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double want = expected.at(i);
    if (actual.at(i) == want || (std::isnan(want) && std::isnan(actual.at(i)))) continue;
    ASSERT_NEAR(actual.at(i), want, 2e-5 * std::max(1.0, std::abs(want))) << "element " << i;
  }
}

void expect_same_values(const front::Module& module, const Program& program,
                        const std::vector<Tensor>& inputs) {
  const auto expected = eval::run(module.functions[0], inputs);
  const auto actual = evaluate(program, inputs, nullptr);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) expect_close(actual[i], expected[i]);
}

std::string describe(unsigned seed, const front::Module& module) {
  return "seed " + std::to_string(seed) + "\n" + front::print(module);
}

class RandomProgram : public testing::TestWithParam<unsigned> {};

TEST_P(RandomProgram, has_the_values_of_its_front_form) {
  for (unsigned seed = GetParam(); seed < GetParam() + 50; ++seed) {
    const front::Module module = ProgramWriter(seed).write(25);
    SCOPED_TRACE(describe(seed, module));
    const auto inputs = random_inputs(module.functions[0], seed);
    Program program = build(module, module.functions[0]);
    ASSERT_NO_THROW(verify(program));
    ASSERT_NO_FATAL_FAILURE(expect_same_values(module, program, inputs));
  }
}

// tanh(x) = 2 logistic(2x) - 1: everything above it is made again.
TEST_P(RandomProgram, keeps_its_values_when_it_is_rebuilt) {
  const Rewrite rewrite = [](Graph& graph, const Use& use, const UseCounts&) -> Use {
    if (!use.node->is(Kind::kPointwise, "tanh")) return {};
    const Use two = graph.scalar(2, DType::kF32), one = graph.scalar(1, DType::kF32);
    auto make = [&](std::string_view name, std::vector<Use> operands) {
      return graph.pointwise(name, std::move(operands), DType::kF32);
    };
    const Use half = make("logistic", {make("mul", {two, graph.child(use, 0)})});
    return make("sub", {make("mul", {two, half}), one});
  };
  for (unsigned seed = GetParam(); seed < GetParam() + 50; ++seed) {
    const front::Module module = ProgramWriter(seed).write(25);
    SCOPED_TRACE(describe(seed, module));
    const auto inputs = random_inputs(module.functions[0], seed);
    Program program = build(module, module.functions[0]);
    rebuild(program, rewrite);
    ASSERT_NO_THROW(verify(program));
    ASSERT_NO_FATAL_FAILURE(expect_same_values(module, program, inputs));
    EXPECT_FALSE(rebuild(program, rewrite));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, testing::Range(0u, 400u, 50u));

}  // namespace
}  // namespace jaxport::axis
