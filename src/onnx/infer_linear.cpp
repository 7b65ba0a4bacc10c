// SPDX-License-Identifier: Apache-2.0
// Products, attention, recurrent layers and transforms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

// numpy.matmul: a vector counts as a row on the left and as a column on the right.
std::optional<Dims> matmul_shape(const Inference& n, const Dims* lhs, const Dims* rhs) {
  if (lhs == nullptr || rhs == nullptr) return std::nullopt;
  if (lhs->empty() || rhs->empty()) n.fail("an input is a scalar");
  Dims a = *lhs, b = *rhs;
  if (lhs->size() == 1) a.insert(a.begin(), 1);
  if (rhs->size() == 1) b.push_back(1);
  agreed(n, a.back(), b[b.size() - 2]);
  Dims out = broadcast(n, Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (lhs->size() > 1) out.push_back(a[a.size() - 2]);
  if (rhs->size() > 1) out.push_back(b.back());
  return out;
}

void matmul(Inference& n) {
  if (auto out = matmul_shape(n, n.shape(0), n.shape(1))) n.set(0, std::move(*out));
}

void qlinear_matmul(Inference& n) {
  if (auto out = matmul_shape(n, n.shape(0), n.shape(3))) n.set(0, std::move(*out));
}

void gemm(Inference& n) {
  const Dims *a = n.shape(0), *b = n.shape(1);
  if (a == nullptr || b == nullptr) return;
  if (a->size() != 2 || b->size() != 2) n.fail("an input is not a matrix");
  const std::size_t a_is_transposed = n.attr("transA", 0) != 0 ? 1 : 0;
  const std::size_t b_is_transposed = n.attr("transB", 0) != 0 ? 1 : 0;
  agreed(n, (*a)[1 - a_is_transposed], (*b)[b_is_transposed]);
  Dims out{(*a)[a_is_transposed], (*b)[1 - b_is_transposed]};
  if (const Dims* c = n.shape(2)) {
    if (broadcast(n, out, *c).size() != 2) n.fail("C has more than two axes");
  }
  n.set(0, std::move(out));
}

// An einsum equation: the letters of each operand and of the result.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

// Without "->" the result has the letters that occur once, in alphabetical order.
std::string implicit_result(const std::vector<std::string>& operands) {
  std::array<int, 128> count{};
  for (const std::string& letters : operands) {
    for (char letter : letters) ++count[static_cast<unsigned char>(letter) & 127u];
  }
  std::string result;
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (count[static_cast<unsigned char>(letter)] == 1) result.push_back(letter);
  }
  return result;
}

Equation parse_equation(std::string_view text) {
  Equation equation;
  equation.operands.emplace_back();
  bool in_result = false;
  for (char c : text) {
    if (c == ',') equation.operands.emplace_back();
    if (c == '>') in_result = true;
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter) (in_result ? equation.result : equation.operands.back()).push_back(c);
  }
  if (!in_result) equation.result = implicit_result(equation.operands);
  return equation;
}

void einsum(Inference& n) {
  const std::string_view text = n.attr("equation", "");
  if (text.find('.') != std::string_view::npos) return;  // "...": the shape stays unknown
  const Equation equation = parse_equation(text);
  if (equation.operands.size() != n.input_count()) n.fail("the equation has other operands");
  std::array<std::optional<Dim>, 128> sizes;
  for (std::size_t i = 0; i < n.input_count(); ++i) {
    const Dims* in = n.shape(i);
    if (in == nullptr) return;
    const std::string& letters = equation.operands[i];
    if (letters.size() != in->size()) n.fail(fmt::format("operand {} has another rank", i));
    for (std::size_t k = 0; k < letters.size(); ++k) {
      std::optional<Dim>& size = sizes[static_cast<unsigned char>(letters[k])];
      size = size ? broadcast(n, {*size}, {(*in)[k]})[0] : (*in)[k];
    }
  }
  Dims out;
  for (char letter : equation.result) {
    const std::optional<Dim>& size = sizes[static_cast<unsigned char>(letter)];
    if (!size) n.fail(fmt::format("'{}' is in no operand", letter));
    out.push_back(*size);
  }
  n.set(0, std::move(out));
}

void det(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr || in->size() < 2) return;
  n.set(0, Dims(in->begin(), in->end() - 2));
}

// Q, K and V are [batch, heads, length, size] or [batch, length, heads * size].
struct Heads {
  Dim batch, count, length, size;
};

std::optional<Heads> heads_of(const Inference& n, std::size_t input, std::string_view count_attr) {
  const Dims* in = n.shape(input);
  if (in == nullptr) return std::nullopt;
  if (in->size() == 4) return Heads{(*in)[0], (*in)[1], (*in)[2], (*in)[3]};
  const std::int64_t count = n.attr(count_attr, 0);
  if (in->size() != 3 || count <= 0) n.fail("an operand has no heads");
  return Heads{(*in)[0], count, (*in)[1], floordiv((*in)[2], count)};
}

void attention(Inference& n) {
  const auto q = heads_of(n, 0, "q_num_heads"), k = heads_of(n, 1, "kv_num_heads"),
             v = heads_of(n, 2, "kv_num_heads");
  if (!q || !k || !v) return;
  agreed(n, q->size, k->size);
  if (n.shape(0)->size() == 4)
    n.set(0, {q->batch, q->count, q->length, v->size});
  else
    n.set(0, {q->batch, q->length, q->count * v->size});
  Dim total = k->length;
  if (n.has(4)) {
    const Dims* past = n.shape(4);
    if (past == nullptr || past->size() != 4) return;
    total = total + (*past)[2];
  }
  n.set(1, {k->batch, k->count, total, k->size});
  n.set(2, {v->batch, v->count, total, v->size});
  n.set(3, {q->batch, q->count, q->length, total});
}

// RNN, GRU and LSTM: all states, the last hidden state, and for LSTM the last cell state.
void recurrent(Inference& n) {
  const Dims *x = n.shape(0), *recurrence = n.shape(2);
  if (x == nullptr || recurrence == nullptr) return;
  if (x->size() != 3 || recurrence->size() != 3) n.fail("X or R does not have three axes");
  const Dim directions = (*recurrence)[0], hidden = recurrence->back();
  const bool is_batch_first = n.attr("layout", 0) != 0;
  const Dim length = (*x)[is_batch_first ? 1 : 0], batch = (*x)[is_batch_first ? 0 : 1];
  const Dims last =
      is_batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  n.set(0, is_batch_first ? Dims{batch, length, directions, hidden}
                          : Dims{length, directions, batch, hidden});
  n.set(1, last);
  n.set(2, last);
}

// The axis is an attribute before opset 20, an input from then on; nullopt: only known at run time.
std::optional<std::int64_t> dft_axis(const Inference& n) {
  if (n.since() < 20) return n.attr("axis", 1);
  if (!n.has(2)) return -2;
  const auto axis = n.number(2);
  return axis ? std::optional(static_cast<std::int64_t>(*axis)) : std::nullopt;
}

// The last axis holds real and imaginary part. Of a real signal of length n one side is kept:
// n / 2 + 1 frequencies, from which the inverse gives 2 * (frequencies - 1) real numbers.
void dft(Inference& n) {
  const Dims* in = n.shape(0);
  const auto stated_axis = dft_axis(n);
  if (in == nullptr || in->size() < 2 || !stated_axis) return;
  const std::size_t axis = n.from_front(*stated_axis, in->size());
  const bool is_onesided = n.attr("onesided", 0) != 0, is_inverse = n.attr("inverse", 0) != 0;
  Dim length = is_onesided && is_inverse ? ((*in)[axis] - 1) * 2 : (*in)[axis];
  if (n.has(1)) {
    const auto stated_length = n.number(1);
    if (!stated_length) return;
    length = static_cast<std::int64_t>(*stated_length);
  }
  Dims out = *in;
  out[axis] = is_onesided && !is_inverse ? floordiv(length, 2) + 1 : length;
  out.back() = is_onesided && is_inverse ? 1 : 2;
  n.set(0, std::move(out));
}

constexpr InferenceRule kInferLinearRules[] = {
    {"Attention", attention},
    {"DFT", dft},
    {"Det", det},
    {"Einsum", einsum},
    {"GRU", recurrent},
    {"Gemm", gemm},
    {"LSTM", recurrent},
    {"MatMul", matmul},
    {"MatMulInteger", matmul},
    {"QLinearMatMul", qlinear_matmul},
    {"RNN", recurrent},
    {"RotaryEmbedding", same_as_input},
};
static_assert(std::ranges::is_sorted(kInferLinearRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> linear_rules() { return kInferLinearRules; }

}  // namespace jaxport::onnx
