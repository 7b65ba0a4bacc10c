// SPDX-License-Identifier: Apache-2.0
// The rules of the activations: how JAX spells each, and a spelling that only comes near.
#include <array>
#include <utility>

#include "raise/activation_match.h"
#include "raise/rules.h"

namespace jaxport::raise {
namespace {

constexpr Rule rule(std::string_view name, std::string_view sample,
                    std::span<const std::string_view> near_misses) {
  return {name, kActivationRoots, match_activation, sample, near_misses};
}

// jax.nn.gelu
constexpr std::string_view kGeluTanhSample = R"(func @gelu_tanh(%x: f32[B,8]) -> (%y) {
  %k: f32[] = constant 0.044714998453855515
  %c: f32[] = constant 0.7978845834732056
  %one: f32[] = constant 1.0
  %half: f32[] = constant 0.5
  %cube: f32[B,8] = integer_pow %x {y = 3}
  %kc: f32[B,8] = mul %k %cube
  %in: f32[B,8] = add %x %kc
  %arg: f32[B,8] = mul %c %in
  %tanh: f32[B,8] = tanh %arg
  %plus: f32[B,8] = add %one %tanh
  %cdf: f32[B,8] = mul %half %plus
  %y: f32[B,8] = mul %x %cdf
  return %y
})";
constexpr std::string_view kGeluTanhNearMisses[] = {
    // another cubic coefficient
    R"(func @gelu_tanh_near_miss(%x: f32[B,8]) -> (%y) {
  %k: f32[] = constant 0.045
  %c: f32[] = constant 0.7978845834732056
  %one: f32[] = constant 1.0
  %half: f32[] = constant 0.5
  %cube: f32[B,8] = integer_pow %x {y = 3}
  %kc: f32[B,8] = mul %k %cube
  %in: f32[B,8] = add %x %kc
  %arg: f32[B,8] = mul %c %in
  %tanh: f32[B,8] = tanh %arg
  %plus: f32[B,8] = add %one %tanh
  %cdf: f32[B,8] = mul %half %plus
  %y: f32[B,8] = mul %x %cdf
  return %y
})"};

// jax.nn.gelu(approximate=False)
constexpr std::string_view kGeluErfSample = R"(func @gelu_erf(%x: f32[B,8]) -> (%y) {
  %half: f32[] = constant 0.5
  %r: f32[] = constant 0.7071067690849304
  %hx: f32[B,8] = mul %half %x
  %neg: f32[B,8] = neg %x
  %arg: f32[B,8] = mul %neg %r
  %erfc: f32[B,8] = erfc %arg
  %y: f32[B,8] = mul %hx %erfc
  return %y
})";
constexpr std::string_view kGeluErfNearMisses[] = {
    // another slope
    R"(func @gelu_erf_near_miss(%x: f32[B,8]) -> (%y) {
  %half: f32[] = constant 0.5
  %r: f32[] = constant 0.7075
  %hx: f32[B,8] = mul %half %x
  %neg: f32[B,8] = neg %x
  %arg: f32[B,8] = mul %neg %r
  %erfc: f32[B,8] = erfc %arg
  %y: f32[B,8] = mul %hx %erfc
  return %y
})"};

// jax.nn.silu
constexpr std::string_view kSiluSample = R"(func @silu(%x: f32[B,8]) -> (%y) {
  %sig: f32[B,8] = logistic %x
  %y: f32[B,8] = mul %x %sig
  return %y
})";
constexpr std::string_view kSiluNearMisses[] = {
    // steeper
    R"(func @silu_near_miss(%x: f32[B,8]) -> (%y) {
  %k: f32[] = constant 1.01
  %kx: f32[B,8] = mul %k %x
  %sig: f32[B,8] = logistic %kx
  %y: f32[B,8] = mul %x %sig
  return %y
})"};

// 1 / (1 + exp(-x)), by hand
constexpr std::string_view kSigmoidSample = R"(func @sigmoid(%x: f32[B,8]) -> (%y) {
  %one: f32[] = constant 1.0
  %neg: f32[B,8] = neg %x
  %exp: f32[B,8] = exp %neg
  %den: f32[B,8] = add %one %exp
  %y: f32[B,8] = div %one %den
  return %y
})";
constexpr std::string_view kSigmoidNearMisses[] = {
    // another plateau
    R"(func @sigmoid_near_miss(%x: f32[B,8]) -> (%y) {
  %one: f32[] = constant 1.0
  %top: f32[] = constant 1.001
  %neg: f32[B,8] = neg %x
  %exp: f32[B,8] = exp %neg
  %den: f32[B,8] = add %one %exp
  %y: f32[B,8] = div %top %den
  return %y
})"};

// jax.nn.relu
constexpr std::string_view kReluSample = R"(func @relu(%x: f32[B,8]) -> (%y) {
  %lo: f32[] = constant 0.0
  %y: f32[B,8] = max %x %lo
  return %y
})";
constexpr std::string_view kReluNearMisses[] = {
    // bounded away from zero
    R"(func @relu_near_miss(%x: f32[B,8]) -> (%y) {
  %lo: f32[] = constant 0.001
  %y: f32[B,8] = max %x %lo
  return %y
})"};

// jax.nn.relu6
constexpr std::string_view kRelu6Sample = R"(func @relu6(%x: f32[B,8]) -> (%y) {
  %lo: f32[] = constant 0.0
  %hi: f32[] = constant 6.0
  %low: f32[B,8] = max %x %lo
  %y: f32[B,8] = min %low %hi
  return %y
})";
constexpr std::string_view kRelu6NearMisses[] = {
    // another bound
    R"(func @relu6_near_miss(%x: f32[B,8]) -> (%y) {
  %lo: f32[] = constant 0.0
  %hi: f32[] = constant 6.01
  %y: f32[B,8] = clamp %lo %x %hi
  return %y
})"};

// jax.nn.softplus
constexpr std::string_view kSoftplusSample = R"(func @softplus(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %max: f32[B,8] = max %x %zero
  %dif: f32[B,8] = sub %x %zero
  %nan: bool[B,8] = ne %dif %dif
  %sum: f32[B,8] = add %x %zero
  %abs: f32[B,8] = abs %dif
  %neg: f32[B,8] = neg %abs
  %exp: f32[B,8] = exp %neg
  %log: f32[B,8] = log1p %exp
  %big: f32[B,8] = add %max %log
  %y: f32[B,8] = select_n %nan %big %sum
  return %y
})";
constexpr std::string_view kSoftplusNearMisses[] = {
    // steeper
    R"(func @softplus_near_miss(%x: f32[B,8]) -> (%y) {
  %k: f32[] = constant 1.01
  %one: f32[] = constant 1.0
  %exp: f32[B,8] = exp %x
  %ke: f32[B,8] = mul %k %exp
  %plus: f32[B,8] = add %one %ke
  %y: f32[B,8] = log %plus
  return %y
})"};

// jax.nn.mish
constexpr std::string_view kMishSample = R"(func @mish(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %max: f32[B,8] = max %x %zero
  %dif: f32[B,8] = sub %x %zero
  %nan: bool[B,8] = ne %dif %dif
  %sum: f32[B,8] = add %x %zero
  %abs: f32[B,8] = abs %dif
  %neg: f32[B,8] = neg %abs
  %exp: f32[B,8] = exp %neg
  %log: f32[B,8] = log1p %exp
  %big: f32[B,8] = add %max %log
  %sp: f32[B,8] = select_n %nan %big %sum
  %tanh: f32[B,8] = tanh %sp
  %y: f32[B,8] = mul %x %tanh
  return %y
})";
constexpr std::string_view kMishNearMisses[] = {
    // steeper
    R"(func @mish_near_miss(%x: f32[B,8]) -> (%y) {
  %k: f32[] = constant 1.01
  %one: f32[] = constant 1.0
  %exp: f32[B,8] = exp %x
  %ke: f32[B,8] = mul %k %exp
  %plus: f32[B,8] = add %one %ke
  %sp: f32[B,8] = log %plus
  %tanh: f32[B,8] = tanh %sp
  %y: f32[B,8] = mul %x %tanh
  return %y
})"};

// jax.nn.selu
constexpr std::string_view kSeluSample = R"(func @selu(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %pos: bool[B,8] = gt %x %zero
  %a: f32[] = constant 1.6732632423543772
  %zeros: f32[B,8] = broadcast_in_dim %zero {shape = (B, 8), broadcast_dimensions = ()}
  %low: f32[B,8] = select_n %pos %x %zeros
  %exp: f32[B,8] = expm1 %low
  %ae: f32[B,8] = mul %a %exp
  %elu: f32[B,8] = select_n %pos %ae %x
  %s: f32[] = constant 1.0507010221481323
  %y: f32[B,8] = mul %s %elu
  return %y
})";
constexpr std::string_view kSeluNearMisses[] = {
    // constants of two digits
    R"(func @selu_near_miss(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %a: f32[] = constant 1.67
  %s: f32[] = constant 1.05
  %pos: bool[B,8] = gt %x %zero
  %exp: f32[B,8] = exp %x
  %one: f32[] = constant 1.0
  %em1: f32[B,8] = sub %exp %one
  %ae: f32[B,8] = mul %a %em1
  %as: f32[B,8] = mul %s %ae
  %sx: f32[B,8] = mul %s %x
  %y: f32[B,8] = select_n %pos %as %sx
  return %y
})"};

// jax.nn.hard_swish
constexpr std::string_view kHardSwishSample = R"(func @hard_swish(%x: f32[B,8]) -> (%y) {
  %three: f32[] = constant 3.0
  %zero: f32[] = constant 0.0
  %six: f32[] = constant 6.0
  %up: f32[B,8] = add %x %three
  %low: f32[B,8] = max %up %zero
  %mid: f32[B,8] = min %low %six
  %gate: f32[B,8] = div %mid %six
  %y: f32[B,8] = mul %x %gate
  return %y
})";
constexpr std::string_view kHardSwishNearMisses[] = {
    // another bound
    R"(func @hard_swish_near_miss(%x: f32[B,8]) -> (%y) {
  %three: f32[] = constant 3.0
  %zero: f32[] = constant 0.0
  %hi: f32[] = constant 6.01
  %six: f32[] = constant 6.0
  %up: f32[B,8] = add %x %three
  %mid: f32[B,8] = clamp %zero %up %hi
  %gate: f32[B,8] = div %mid %six
  %y: f32[B,8] = mul %x %gate
  return %y
})"};

// jax.nn.hard_sigmoid
constexpr std::string_view kHardSigmoidSample = R"(func @hard_sigmoid(%x: f32[B,8]) -> (%y) {
  %three: f32[] = constant 3.0
  %zero: f32[] = constant 0.0
  %six: f32[] = constant 6.0
  %up: f32[B,8] = add %x %three
  %low: f32[B,8] = max %up %zero
  %mid: f32[B,8] = min %low %six
  %y: f32[B,8] = div %mid %six
  return %y
})";
constexpr std::string_view kHardSigmoidNearMisses[] = {
    // another bound
    R"(func @hard_sigmoid_near_miss(%x: f32[B,8]) -> (%y) {
  %three: f32[] = constant 3.0
  %zero: f32[] = constant 0.0
  %hi: f32[] = constant 6.01
  %six: f32[] = constant 6.0
  %up: f32[B,8] = add %x %three
  %mid: f32[B,8] = clamp %zero %up %hi
  %y: f32[B,8] = div %mid %six
  return %y
})"};

// jax.nn.hard_tanh
constexpr std::string_view kHardTanhSample = R"(func @hard_tanh(%x: f32[B,8]) -> (%y) {
  %one: f32[] = constant 1.0
  %low: f32[] = constant -1.0
  %gt: bool[B,8] = gt %x %one
  %lt: bool[B,8] = lt %x %low
  %ones: f32[B,8] = broadcast_in_dim %one {shape = (B, 8), broadcast_dimensions = ()}
  %lows: f32[B,8] = broadcast_in_dim %low {shape = (B, 8), broadcast_dimensions = ()}
  %a: f32[B,8] = select_n %lt %x %lows
  %y: f32[B,8] = select_n %gt %a %ones
  return %y
})";
constexpr std::string_view kHardTanhNearMisses[] = {
    // another bound
    R"(func @hard_tanh_near_miss(%x: f32[B,8]) -> (%y) {
  %lo: f32[] = constant -1.0
  %hi: f32[] = constant 1.01
  %y: f32[B,8] = clamp %lo %x %hi
  return %y
})"};

// jax.nn.soft_sign
constexpr std::string_view kSoftsignSample = R"(func @softsign(%x: f32[B,8]) -> (%y) {
  %one: f32[] = constant 1.0
  %abs: f32[B,8] = abs %x
  %den: f32[B,8] = add %abs %one
  %y: f32[B,8] = div %x %den
  return %y
})";
constexpr std::string_view kSoftsignNearMisses[] = {
    // another shift
    R"(func @softsign_near_miss(%x: f32[B,8]) -> (%y) {
  %one: f32[] = constant 1.001
  %abs: f32[B,8] = abs %x
  %den: f32[B,8] = add %abs %one
  %y: f32[B,8] = div %x %den
  return %y
})"};

// jax.nn.leaky_relu
constexpr std::string_view kLeakyReluSample = R"(func @leaky_relu(%x: f32[B,8]) -> (%y) {
  %t: f32[] = constant 0.0
  %a: f32[] = constant 0.009999999776482582
  %pos: bool[B,8] = ge %x %t
  %ax: f32[B,8] = mul %a %x
  %y: f32[B,8] = select_n %pos %ax %x
  return %y
})";
constexpr std::string_view kLeakyReluNearMisses[] = {
    // the threshold is not zero
    R"(func @leaky_relu_near_miss(%x: f32[B,8]) -> (%y) {
  %t: f32[] = constant 0.01
  %a: f32[] = constant 0.2
  %pos: bool[B,8] = ge %x %t
  %ax: f32[B,8] = mul %a %x
  %y: f32[B,8] = select_n %pos %ax %x
  return %y
})"};

// jnp.where(x > alpha, x, 0)
constexpr std::string_view kThresholdedReluSample =
    R"(func @thresholded_relu(%x: f32[B,8]) -> (%y) {
  %t: f32[] = constant 0.5
  %zero: f32[] = constant 0.0
  %on: bool[B,8] = gt %x %t
  %zeros: f32[B,8] = broadcast_in_dim %zero {shape = (B, 8), broadcast_dimensions = ()}
  %y: f32[B,8] = select_n %on %zeros %x
  return %y
})";
constexpr std::string_view kThresholdedReluNearMisses[] = {
    // another value below the threshold
    R"(func @thresholded_relu_near_miss(%x: f32[B,8]) -> (%y) {
  %t: f32[] = constant 0.5
  %low: f32[] = constant 0.01
  %on: bool[B,8] = gt %x %t
  %lows: f32[B,8] = broadcast_in_dim %low {shape = (B, 8), broadcast_dimensions = ()}
  %y: f32[B,8] = select_n %on %lows %x
  return %y
})"};

// jax.nn.elu
constexpr std::string_view kEluSample = R"(func @elu(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %pos: bool[B,8] = gt %x %zero
  %a: f32[] = constant 0.5
  %zeros: f32[B,8] = broadcast_in_dim %zero {shape = (B, 8), broadcast_dimensions = ()}
  %low: f32[B,8] = select_n %pos %x %zeros
  %exp: f32[B,8] = expm1 %low
  %ae: f32[B,8] = mul %a %exp
  %y: f32[B,8] = select_n %pos %ae %x
  return %y
})";
constexpr std::string_view kEluNearMisses[] = {
    // the threshold is not zero
    R"(func @elu_near_miss(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.01
  %pos: bool[B,8] = gt %x %zero
  %a: f32[] = constant 0.5
  %zeros: f32[B,8] = broadcast_in_dim %zero {shape = (B, 8), broadcast_dimensions = ()}
  %low: f32[B,8] = select_n %pos %x %zeros
  %exp: f32[B,8] = expm1 %low
  %ae: f32[B,8] = mul %a %exp
  %y: f32[B,8] = select_n %pos %ae %x
  return %y
})"};

// jax.nn.celu
constexpr std::string_view kCeluSample = R"(func @celu(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.0
  %a: f32[] = constant 2.0
  %pos: f32[B,8] = max %x %zero
  %low: f32[B,8] = min %x %zero
  %sc: f32[B,8] = div %low %a
  %exp: f32[B,8] = expm1 %sc
  %ae: f32[B,8] = mul %a %exp
  %y: f32[B,8] = add %pos %ae
  return %y
})";
constexpr std::string_view kCeluNearMisses[] = {
    // the threshold is not zero
    R"(func @celu_near_miss(%x: f32[B,8]) -> (%y) {
  %zero: f32[] = constant 0.01
  %a: f32[] = constant 2.0
  %pos: f32[B,8] = max %x %zero
  %low: f32[B,8] = min %x %zero
  %sc: f32[B,8] = div %low %a
  %exp: f32[B,8] = expm1 %sc
  %ae: f32[B,8] = mul %a %exp
  %y: f32[B,8] = add %pos %ae
  return %y
})"};

constexpr Rule kRules[] = {
    rule("gelu_tanh", kGeluTanhSample, kGeluTanhNearMisses),
    rule("gelu_erf", kGeluErfSample, kGeluErfNearMisses),
    rule("silu", kSiluSample, kSiluNearMisses),
    rule("sigmoid", kSigmoidSample, kSigmoidNearMisses),
    rule("relu", kReluSample, kReluNearMisses),
    rule("relu6", kRelu6Sample, kRelu6NearMisses),
    rule("softplus", kSoftplusSample, kSoftplusNearMisses),
    rule("mish", kMishSample, kMishNearMisses),
    rule("selu", kSeluSample, kSeluNearMisses),
    rule("hard_swish", kHardSwishSample, kHardSwishNearMisses),
    rule("hard_sigmoid", kHardSigmoidSample, kHardSigmoidNearMisses),
    rule("hard_tanh", kHardTanhSample, kHardTanhNearMisses),
    rule("softsign", kSoftsignSample, kSoftsignNearMisses),
    rule("leaky_relu", kLeakyReluSample, kLeakyReluNearMisses),
    rule("thresholded_relu", kThresholdedReluSample, kThresholdedReluNearMisses),
    rule("elu", kEluSample, kEluNearMisses),
    rule("celu", kCeluSample, kCeluNearMisses),
};

template <std::size_t... I>
constexpr auto pointers(std::index_sequence<I...>) {
  return std::array{&kRules[I]...};
}
constexpr auto kPointers = pointers(std::make_index_sequence<std::size(kRules)>());

}  // namespace

Rules activation_rules() { return kPointers; }

}  // namespace jaxport::raise
