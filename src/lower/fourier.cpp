// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along the last axis. A complex number is a last axis of two parts, as in ONNX.
#include "lower/ctx.h"

namespace jaxport::lower {
namespace {

struct Transform {
  std::string_view name;
  bool is_inverse = false, is_real = false;
};
constexpr Transform kTransforms[] = {{"fft"}, {"ifft", true}, {"rfft", false, true}};

const Transform& transform_of(Ctx& c) {
  const std::string name = c.param<std::string>("fft_type");
  for (const Transform& transform : kTransforms) {
    if (transform.name == name) return transform;
  }
  c.unsupported("the transform is '" + name + "'");
}

// DFT takes [batch, n, parts]: the axes before the last are one batch.
Results fft(Ctx& c) {
  const Transform& transform = transform_of(c);
  const Dims& in = c.in_type(0).shape;
  const Dims& out = c.out_type().shape;
  const std::size_t axis = out.size() - 2;
  if (front::get_dims(c.eqn(), "fft_lengths").size() != 1) c.unsupported("it has several axes");
  if (product(out).is_zero()) return c.expand(c.scalar(0, c.out_type().dtype), out);
  const Dim batch = product(Dims(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(axis)));
  const Value x = c.reshape(c.in(0), {batch, in[axis], transform.is_real ? 1 : 2});
  onnx::Args args{{"inverse", transform.is_inverse ? 1 : 0},
                  {"onesided", transform.is_real ? 1 : 0}};
  Values operands{x};
  if (c.op.opset() >= 20) {
    operands.insert(operands.end(), {Value{}, c.op.scalar(1, DType::kI64)});
  } else {
    args.emplace_back("axis", 1);
  }
  return c.reshape(c.op.call_with_shape("DFT", operands, args, {batch, out[axis], 2}), out);
}

constexpr Row kRows[] = {{"fft", fft}};

}  // namespace

std::span<const Row> fourier_rows() { return kRows; }

}  // namespace jaxport::lower
