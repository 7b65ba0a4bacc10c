// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along the last axis. A complex number is a last axis of two parts, as in ONNX.
#include "lower/rows/fourier.h"

#include "onnx/schema.h"

namespace jaxport::lower {
namespace {

struct TransformName {
  std::string_view name;
  Fourier transform;
};
constexpr TransformName kKinds[] = {{"fft", {}},
                                    {"ifft", {.is_inverse = true}},
                                    {"irfft", {.is_inverse = true, .to_real = true}},
                                    {"rfft", {.from_real = true}}};

Fourier transform_of(Ctx& c) {
  const std::string name = c.param<std::string>("fft_type");
  for (const TransformName& kind : kKinds) {
    if (kind.name == name) return kind.transform;
  }
  c.unsupported("the transform '" + name + "' is not supported");
}

// DFT takes [batch, n, parts].
Value dft(Ctx& c, const Fourier& of, const Dim& length, Value x) {
  if (onnx::find_schema("DFT", c.op.opset()) == nullptr) {
    c.unsupported("a transform of symbolic length needs opset 17");
  }
  onnx::Args args{{"inverse", of.is_inverse ? 1 : 0}, {"onesided", of.from_real ? 1 : 0}};
  Values operands{x};
  if (c.op.opset() >= 20) {
    operands.insert(operands.end(), {Value{}, c.op.scalar(1, DType::kI64)});
  } else {
    args.emplace_back("axis", 1);
  }
  const Dim count = of.from_real ? floordiv(length, 2) + 1 : length;
  return c.op.call_with_shape("DFT", operands, args, {x.shape()[0], count, 2});
}

// The axes before the last are one batch.
Results fft(Ctx& c) {
  Fourier of = transform_of(c);
  const Dims lengths = front::get_dims(c.eqn(), "fft_lengths");
  const Dims& in = c.in_type(0).shape;
  const Dims& out = c.out_type().shape;
  if (lengths.size() != 1) c.unsupported("more than one axis is not supported");
  if (product(out).is_zero()) return c.expand(c.op.scalar(0, c.out_type().dtype), out);
  const std::size_t axis = in.size() - (of.from_real ? 1 : 2);
  const Dim batch = product(Dims(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(axis)));
  const Value x = c.reshape(c.in(0), {batch, in[axis], of.in_parts()});
  if (!lengths[0].is_static()) return c.reshape(by_op(c, of, lengths[0], x), out);
  of.length = lengths[0].value();
  return c.reshape(transformed(c, of, x), out);
}

constexpr Row kFourierRows[] = {{"fft", fft}};

}  // namespace

Value by_op(Ctx& c, const Fourier& of, const Dim& length, Value x) {
  if (!of.to_real) return dft(c, of, length, x);
  const Value all = dft(c, {.is_inverse = true}, length, mirrored(c, x, length));
  return c.op.call_with_shape("Slice", {all, c.ints({0}), c.ints({1}), c.ints({2})}, {},
                              {all.shape()[0], length, Dim(1)});
}

Value mirrored(Ctx& c, Value z, const Dim& length) {
  const Dim half = z.shape()[1], rest = length - half;
  if (rest.is_zero()) return z;
  // Frequency n - k is the conjugate of frequency k.
  const Value tail =
      c.op.call_with_shape("Slice", {z, c.dim(rest), c.ints({0}), c.ints({1}), c.ints({-1})}, {},
                           {z.shape()[0], rest, 2});
  MutableTensor signs = allocate(DType::kF32, {2});
  signs.as<float>()[0] = 1, signs.as<float>()[1] = -1;
  const Value conjugate = tail * cast(c.constant(std::move(signs.tensor)), z.dtype());
  return c.op.call_with_shape("Concat", {z, conjugate}, {{"axis", 1}}, {z.shape()[0], length, 2});
}

std::span<const Row> fourier_rows() { return kFourierRows; }

}  // namespace jaxport::lower
