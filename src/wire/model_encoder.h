// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"
#include "wire/encoder.h"
#include "wire/external_data.h"
#include "wire/wire.h"

namespace jaxport::wire {

// The model as a ModelProto. Tensors that `external` takes are placed there; with a null `external`
// all of them are part of the message.
Encoder encode(const onnx::Model& model, const WriteOptions& options, ExternalData* external);

}  // namespace jaxport::wire
