// SPDX-License-Identifier: Apache-2.0
// Ops in dtypes that no wider one can stand in for, composed of ops that the target has.
#pragma once

#include <optional>

#include "onnx/builder.h"

namespace jaxport::target {

// The result of `node` by other ops; nullopt when there is no composition. The caller legalises
// what is built here.
std::optional<onnx::Value> compose(onnx::Builder& op, const onnx::Node& node);

// Conv in any dtype that MatMul has.
std::optional<onnx::Value> compose_conv(onnx::Builder& op, const onnx::Node& node);

// u32 whose upper half is negative.
std::optional<onnx::Value> compose_right_shift(onnx::Builder& op, const onnx::Node& node);

// Integers of 64 bits; products of f64 too.
std::optional<onnx::Value> compose_arg_max(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_arg_min(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_clip(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_max(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_min(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_mod(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_reduce_max(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_reduce_min(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_reduce_prod(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_reduce_sum(onnx::Builder& op, const onnx::Node& node);
std::optional<onnx::Value> compose_sign(onnx::Builder& op, const onnx::Node& node);

}  // namespace jaxport::target
