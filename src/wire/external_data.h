// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnx/ir.h"
#include "wire/file.h"

namespace jaxport::wire {

// The layout of a file of tensors beside a model.
class ExternalData {
 public:
  // `location` is the bare name of the file; tensors of at least `threshold` bytes go there.
  ExternalData(std::string location, std::uint64_t threshold)
      : location_(std::move(location)), threshold_(threshold) {}

  struct Place {
    std::uint64_t offset, bytes;
  };
  bool takes(const onnx::Initializer& initializer) const;
  Place add(const onnx::Initializer& initializer);

  const std::string& location() const { return location_; }
  bool empty() const { return tensors_.empty(); }
  std::uint64_t bytes() const { return size_; }  // of the file
  void write_to(OutputFile& file) const;

 private:
  struct Placed {
    std::uint64_t offset;
    StridedView view;
  };
  std::string location_;
  std::uint64_t threshold_;
  std::uint64_t size_ = 0;
  std::vector<Placed> tensors_;
};

}  // namespace jaxport::wire
