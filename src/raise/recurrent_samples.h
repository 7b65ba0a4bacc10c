// SPDX-License-Identifier: Apache-2.0
// What the rules for recurrent cells raise, and what they must leave.
#pragma once

#include <string_view>

namespace jaxport::raise {

// One contraction for all gates, the state given, all results used.
inline constexpr std::string_view kLstmSample = R"(
func @lstm(%xs: f32[T,B,3], %w: f32[3,8], %r: f32[2,8], %b: f32[8], %c0: f32[B,2], %h0: f32[B,2]) {
  %ct: f32[B,2], %ht: f32[B,2], %ys: f32[T,B,2] = scan %w %r %b %c0 %h0 %xs {jaxpr = @cell { (%w: f32[3,8], %r: f32[2,8], %b: f32[8], %c: f32[B,2], %h: f32[B,2], %x: f32[B,3])
    %one: f32[] = constant 1.0
    %xw: f32[B,8] = dot_general %x %w {dimension_numbers = (((1), (0)), ((), ()))}
    %hr: f32[B,8] = dot_general %h %r {dimension_numbers = (((1), (0)), ((), ()))}
    %bb: f32[1,8] = reshape %b {new_sizes = (1, 8)}
    %hb: f32[B,8] = add %hr %bb
    %all: f32[B,8] = add %xw %hb
    %si: f32[B,2] = slice %all {limit_indices = (B, 2), start_indices = (0, 0), strides = (1, 1)}
    %sf: f32[B,2] = slice %all {limit_indices = (B, 4), start_indices = (0, 2), strides = (1, 1)}
    %sg: f32[B,2] = slice %all {limit_indices = (B, 6), start_indices = (0, 4), strides = (1, 1)}
    %so: f32[B,2] = slice %all {limit_indices = (B, 8), start_indices = (0, 6), strides = (1, 1)}
    %sf1: f32[B,2] = add %sf %one
    %i: f32[B,2] = logistic %si
    %f: f32[B,2] = logistic %sf1
    %g: f32[B,2] = tanh %sg
    %o: f32[B,2] = logistic %so
    %fc: f32[B,2] = mul %f %c
    %ig: f32[B,2] = mul %i %g
    %c1: f32[B,2] = add %fc %ig
    %t: f32[B,2] = tanh %c1
    %h1: f32[B,2] = mul %o %t
    return %c1 %h1 %h1
  }, length = T, num_carry = 2, num_consts = 3, reverse = true, unroll = 1}
  return %ys %ht %ct
}
)";

// The output gate is no sigmoid; c of every step is a result; a gate reads the square of h; the
// gates are clipped.
inline constexpr std::string_view kLstmNearMisses[] = {R"(
func @other_activation(%xs: f32[T,2], %w: f32[2,2], %h0: f32[2], %c0: f32[2]) {
  %ct: f32[2], %ht: f32[2], %ys: f32[T,2] = scan %w %c0 %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %c: f32[2], %h: f32[2], %x: f32[2])
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hw: f32[2] = dot_general %h %w {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hw
    %i: f32[2] = logistic %a
    %g: f32[2] = tanh %a
    %fc: f32[2] = mul %i %c
    %ig: f32[2] = mul %i %g
    %c1: f32[2] = add %fc %ig
    %t: f32[2] = tanh %c1
    %s: f32[2] = sin %a
    %h1: f32[2] = mul %s %t
    return %c1 %h1 %h1
  }, length = T, num_carry = 2, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)",
                                                       R"(
func @states_returned(%xs: f32[T,2], %w: f32[2,2], %h0: f32[2], %c0: f32[2]) {
  %ct: f32[2], %ht: f32[2], %cs: f32[T,2] = scan %w %c0 %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %c: f32[2], %h: f32[2], %x: f32[2])
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hw: f32[2] = dot_general %h %w {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hw
    %i: f32[2] = logistic %a
    %g: f32[2] = tanh %a
    %fc: f32[2] = mul %i %c
    %ig: f32[2] = mul %i %g
    %c1: f32[2] = add %fc %ig
    %t: f32[2] = tanh %c1
    %h1: f32[2] = mul %i %t
    return %c1 %h1 %c1
  }, length = T, num_carry = 2, num_consts = 1, reverse = false, unroll = 1}
  return %cs %ht
}
)",
                                                       R"(
func @square_of_state(%xs: f32[T,2], %w: f32[2,2], %h0: f32[2], %c0: f32[2]) {
  %ct: f32[2], %ht: f32[2], %ys: f32[T,2] = scan %w %c0 %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %c: f32[2], %h: f32[2], %x: f32[2])
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hh: f32[2] = mul %h %h
    %hw: f32[2] = dot_general %hh %w {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hw
    %i: f32[2] = logistic %a
    %g: f32[2] = tanh %a
    %fc: f32[2] = mul %i %c
    %ig: f32[2] = mul %i %g
    %c1: f32[2] = add %fc %ig
    %t: f32[2] = tanh %c1
    %h1: f32[2] = mul %i %t
    return %c1 %h1 %h1
  }, length = T, num_carry = 2, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)",
                                                       R"(
func @clipped(%xs: f32[T,2], %w: f32[2,2], %h0: f32[2], %c0: f32[2]) {
  %ct: f32[2], %ht: f32[2], %ys: f32[T,2] = scan %w %c0 %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %c: f32[2], %h: f32[2], %x: f32[2])
    %lo: f32[] = constant -0.5
    %hi: f32[] = constant 0.5
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hw: f32[2] = dot_general %h %w {dimension_numbers = (((0), (0)), ((), ()))}
    %sum: f32[2] = add %xw %hw
    %a: f32[2] = clamp %lo %sum %hi
    %i: f32[2] = logistic %a
    %g: f32[2] = tanh %a
    %fc: f32[2] = mul %i %c
    %ig: f32[2] = mul %i %g
    %c1: f32[2] = add %fc %ig
    %t: f32[2] = tanh %c1
    %h1: f32[2] = mul %i %t
    return %c1 %h1 %h1
  }, length = T, num_carry = 2, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)"};

// The products with x outside of the loop; z brings the new value; r scales the state.
inline constexpr std::string_view kGruSample = R"(
func @gru(%xs: f32[B,T,3], %w: f32[3,6], %b: f32[6], %r: f32[2,6], %h0: f32[B,2]) {
  %xw: f32[B,T,6] = dot_general %xs %w {dimension_numbers = (((2), (0)), ((), ()))}
  %bb: f32[1,1,6] = reshape %b {new_sizes = (1, 1, 6)}
  %xb: f32[B,T,6] = add %xw %bb
  %steps: f32[T,B,6] = transpose %xb {permutation = (1, 0, 2)}
  %ht: f32[B,2], %ys: f32[T,B,2] = scan %r %h0 %steps {jaxpr = @cell { (%r: f32[2,6], %h: f32[B,2], %x: f32[B,6])
    %one: f32[] = constant 1.0
    %rzr: f32[2,4] = slice %r {limit_indices = (2, 4), start_indices = (0, 0), strides = (1, 1)}
    %rn: f32[2,2] = slice %r {limit_indices = (2, 6), start_indices = (0, 4), strides = (1, 1)}
    %xzr: f32[B,4] = slice %x {limit_indices = (B, 4), start_indices = (0, 0), strides = (1, 1)}
    %xn: f32[B,2] = slice %x {limit_indices = (B, 6), start_indices = (0, 4), strides = (1, 1)}
    %hzr: f32[B,4] = dot_general %h %rzr {dimension_numbers = (((1), (0)), ((), ()))}
    %azr: f32[B,4] = add %xzr %hzr
    %zr: f32[B,4] = logistic %azr
    %z: f32[B,2] = slice %zr {limit_indices = (B, 2), start_indices = (0, 0), strides = (1, 1)}
    %reset: f32[B,2] = slice %zr {limit_indices = (B, 4), start_indices = (0, 2), strides = (1, 1)}
    %rh: f32[B,2] = mul %reset %h
    %hn: f32[B,2] = dot_general %rh %rn {dimension_numbers = (((1), (0)), ((), ()))}
    %an: f32[B,2] = add %xn %hn
    %n: f32[B,2] = tanh %an
    %z1: f32[B,2] = sub %one %z
    %old: f32[B,2] = mul %z1 %h
    %new: f32[B,2] = mul %z %n
    %h1: f32[B,2] = add %old %new
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 1, reverse = false, unroll = 1}
  return %ys %ht
}
)";

// A minimal gated unit: one gate less, r and z are the same and scale other things; a new value
// that is no tanh.
inline constexpr std::string_view kGruNearMisses[] = {R"(
func @no_reset(%xs: f32[T,2], %w: f32[2,2], %r: f32[2,2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %r %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %r: f32[2,2], %h: f32[2], %x: f32[2])
    %one: f32[] = constant 1.0
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hr: f32[2] = dot_general %h %r {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hr
    %z: f32[2] = logistic %a
    %n: f32[2] = tanh %a
    %z1: f32[2] = sub %one %z
    %old: f32[2] = mul %z %h
    %new: f32[2] = mul %z1 %n
    %h1: f32[2] = add %old %new
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 2, reverse = false, unroll = 1}
  return %ys
}
)",
                                                      R"(
func @reset_of_the_input(%xs: f32[T,2], %w: f32[2,2], %r: f32[2,2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %r %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %r: f32[2,2], %h: f32[2], %x: f32[2])
    %one: f32[] = constant 1.0
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hr: f32[2] = dot_general %h %r {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hr
    %z: f32[2] = logistic %a
    %sum: f32[2] = add %xw %hr
    %scaled: f32[2] = mul %z %sum
    %n: f32[2] = tanh %scaled
    %z1: f32[2] = sub %one %z
    %old: f32[2] = mul %z %h
    %new: f32[2] = mul %z1 %n
    %h1: f32[2] = add %old %new
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 2, reverse = false, unroll = 1}
  return %ys
}
)",
                                                      R"(
func @other_activation(%xs: f32[T,2], %w: f32[2,2], %r: f32[2,2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %r %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %r: f32[2,2], %h: f32[2], %x: f32[2])
    %one: f32[] = constant 1.0
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hr: f32[2] = dot_general %h %r {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hr
    %z: f32[2] = logistic %a
    %rh: f32[2] = mul %z %hr
    %an: f32[2] = add %xw %rh
    %n: f32[2] = sin %an
    %z1: f32[2] = sub %one %z
    %old: f32[2] = mul %z %h
    %new: f32[2] = mul %z1 %n
    %h1: f32[2] = add %old %new
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 2, reverse = false, unroll = 1}
  return %ys
}
)"};

// x and h side by side in one contraction; one sequence.
inline constexpr std::string_view kRnnSample = R"(
func @rnn(%xs: f32[T,3], %w: f32[5,2], %b: f32[2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %b %h0 %xs {jaxpr = @cell { (%w: f32[5,2], %b: f32[2], %h: f32[2], %x: f32[3])
    %xh: f32[5] = concatenate %x %h {dimension = 0}
    %xhw: f32[2] = dot_general %xh %w {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xhw %b
    %h1: f32[2] = tanh %a
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 2, reverse = false, unroll = 1}
  return %ys %ht
}
)";

// Another activation; weights that change from step to step; several sequences.
inline constexpr std::string_view kRnnNearMisses[] = {R"(
func @sigmoid_cell(%xs: f32[T,2], %w: f32[2,2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %h: f32[2], %x: f32[2])
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hw: f32[2] = dot_general %h %w {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hw
    %h1: f32[2] = logistic %a
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)",
                                                      R"(
func @weights_of_the_step(%xs: f32[T,2], %ws: f32[T,2,2], %w: f32[2,2], %h0: f32[2]) {
  %ht: f32[2], %ys: f32[T,2] = scan %w %h0 %xs %ws {jaxpr = @cell { (%w: f32[2,2], %h: f32[2], %x: f32[2], %r: f32[2,2])
    %xw: f32[2] = dot_general %x %w {dimension_numbers = (((0), (0)), ((), ()))}
    %hw: f32[2] = dot_general %h %r {dimension_numbers = (((0), (0)), ((), ()))}
    %a: f32[2] = add %xw %hw
    %h1: f32[2] = tanh %a
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)",
                                                      R"(
func @several_sequences(%xs: f32[T,3,2], %w: f32[2,2], %h0: f32[3,2]) {
  %ht: f32[3,2], %ys: f32[T,3,2] = scan %w %h0 %xs {jaxpr = @cell { (%w: f32[2,2], %h: f32[3,2], %x: f32[3,2])
    %xw: f32[3,2] = dot_general %x %w {dimension_numbers = (((1), (0)), ((), ()))}
    %hw: f32[3,2] = dot_general %h %w {dimension_numbers = (((1), (0)), ((), ()))}
    %a: f32[3,2] = add %xw %hw
    %h1: f32[3,2] = tanh %a
    return %h1 %h1
  }, length = T, num_carry = 1, num_consts = 1, reverse = false, unroll = 1}
  return %ys
}
)"};

}  // namespace jaxport::raise
