// SPDX-License-Identifier: Apache-2.0
// Run-time values of symbolic dims: each expression is computed once, from the shapes of the
// model's inputs. All are values of `builder`, as those of a ValueStore are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/builder.h"

namespace jaxport::lower {

class ShapeValues {
 public:
  explicit ShapeValues(onnx::Builder& builder) : op_(builder) {}
  // Inside of a graph: what its own inputs do not tell is computed in the graph around it. Bodies
  // of control flow add no inputs: their sizes are computed once, where all steps see them.
  ShapeValues(onnx::Builder& builder, ShapeValues& outer) : op_(builder), outer_(&outer) {}

  void add_input(onnx::Value input, const Dims& shape);

  onnx::Value dim(const Dim& dim);                     // i64[1]
  onnx::Value number(const Dim& dim);                  // i64
  onnx::Value shape(const Dims& dims);                 // i64[rank]; a constant when all are static
  onnx::Value reshape(onnx::Value x, const Dims& to);  // no node when the shape is already that
  onnx::Value expand(onnx::Value x, const Dims& to);
  onnx::Value range(const Dim& size);  // 0, 1, … as i64[size]
  // The same for each element of a batch, i64[batch, time]; one value for each shape.
  onnx::Value positions(const Dim& batch, const Dim& time);

 private:
  struct Source {
    onnx::Value input;
    std::int64_t axis;
    Dim size;
  };
  // The shape operand of a Reshape from `from` to `to`, where 0 (copy) and one -1 can say it.
  std::optional<onnx::Value> constant_target(const Dims& from, const Dims& to);
  void find_solutions();
  bool is_told_inside(const Dim& dim);  // by the inputs of this graph
  onnx::Value symbol(const std::string& name);
  onnx::Value solve(const std::string& name, const Source& source);
  onnx::Value atom(const DimAtom& atom);
  onnx::Value term(const DimTerm& term);
  onnx::Value read(const Source& source);
  onnx::Value read_run(const Dims& dims);
  onnx::Value read_count(const Dim& count);

  onnx::Builder& op_;
  ShapeValues* outer_ = nullptr;
  std::vector<std::pair<onnx::Value, Dims>> inputs_;
  std::vector<Source> sources_;
  std::map<std::string, std::size_t> solutions_;  // by symbol: the source that determines it
  std::vector<std::pair<Dim, onnx::Value>> known_;
  std::vector<std::pair<Dims, onnx::Value>> positions_;
};

}  // namespace jaxport::lower
