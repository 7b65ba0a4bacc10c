// SPDX-License-Identifier: Apache-2.0
// What prepare() does to single nodes of the axis graph; an empty Use leaves the node as it is.
#pragma once

#include "axis/graph/graph.h"
#include "lower/lower.h"

namespace jaxport::lower {

// sum(x) / n and sum(x) * (1/n) over n elements: reduce_mean.
axis::Use mean(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses);

// Constant scales and shifts go into the weights of the contraction or convolution beside them;
// what remains of a chain is one scale and one shift.
axis::Use fold_affine(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses);

// A constant that is added to the features of a convolution is its third operand, as in ONNX.
axis::Use conv_bias(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses);

// A convolution over a dilated input, where the target has ConvTranspose for it: the primitive
// conv_transpose, whose kernel is reversed and [I, O/g, spatial…]. Comes after conv_bias.
axis::Use conv_transpose(axis::Graph& graph, const axis::Use& use, const Options& options);

// A sum of windows divided by the number of their elements, with or without those of the padding:
// the primitive reduce_window_mean.
axis::Use window_mean(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses,
                      const Options& options);

// A gather of single elements or of whole dims, with indices that are inside: gather_inside, and a
// select where JAX fills what is outside.
axis::Use gather_inside(axis::Graph& graph, const axis::Use& use);
// The same for scatter and its reductions: their mode is "inside".
axis::Use scatter_inside(axis::Graph& graph, const axis::Use& use);

// f16(norm(f32(x))) as a norm of f16, where the op of the target computes in f32 and rounds in the
// same place.
axis::Use narrow_norm(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses,
                      const Options& options);

// log(sigmoid(x)), 1 / sigmoid(x) and the like with the definition of the sigmoid: its op has no
// right digits where the result is small.
axis::Use exact_sigmoid(axis::Graph& graph, const axis::Use& use);

// An argmax, a sort or a top_k of floats of which none is NaN, marked with "no_nan".
axis::Use order_without_nan(axis::Graph& graph, const axis::Use& use);

// A top_k of floats marked with "signed_zeros": it takes -0 for less than 0.
axis::Use order_with_signs(axis::Graph& graph, const axis::Use& use);

// expm1 and log1p of whole numbers as exp and log: none of them is so small that a sum with 1 would
// lose its digits. The same for expm1(x) + c where c is 1 or more, as in derivatives.
axis::Use plain_exponential(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses);

// Attention of a sequence of which some positions were rotated: the whole sequence is, the others
// by an angle of 0.
axis::Use whole_rope(axis::Graph& graph, const axis::Use& use, const axis::UseCounts& uses);

// Sizes side by side, some of them symbolic: the primitive shape_as_value.
axis::Use sizes_side_by_side(axis::Graph& graph, const axis::Use& use);

// |x| with the sign bit of another float as a product; before opset 26 the bit is tested by
// arithmetic.
axis::Use sign_test(axis::Graph& graph, const axis::Use& use, const Options& options);
// x << a | y >> b of parts that do not meet: ONNX Runtime takes 0.6 to 0.7 of the time for a
// product and a sum.
axis::Use rotation(axis::Graph& graph, const axis::Use& use);

// x // y and x % y of i32: the primitives floor_quotient and floor_remainder.
axis::Use floor_division(axis::Graph& graph, const axis::Use& use);

// A search in a constant table that is in order: the primitive search_in_order.
axis::Use search_in_order(axis::Graph& graph, const axis::Use& use);

// A matrix of symbolic size with ones on a diagonal: the macro eye.
axis::Use eye(axis::Graph& graph, const axis::Use& use);

// A matrix of symbolic size with zeros above or below a diagonal: the primitive triangle.
axis::Use triangle(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::lower
