// SPDX-License-Identifier: Apache-2.0
// The ops that raising makes, declared once: rules make them, decompositions (expand), the layout
// search and emission read them. op.h says how.
//
// Activations are declared in rules/activation.h, recurrent cells in rules/recurrent.h.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "axis/graph/graph.h"
#include "raise/engine/op.h"

namespace jaxport::raise {

// What runs along some labels of x.
struct AlongOp {
  axis::Use x;
  axis::Labels along;
  void fields(Fields& f) {
    f.operand(x);
    f.labels("s", along);
  }
};

// exp(x) / sum exp(x)
struct SoftmaxOp : AlongOp {
  static constexpr std::string_view kName = "softmax";
  axis::Use expand() const;
};

// x - log sum exp(x)
struct LogSoftmaxOp : AlongOp {
  static constexpr std::string_view kName = "log_softmax";
  axis::Use expand() const;
};

// log sum exp(x)
struct LogSumExpOp : AlongOp {
  static constexpr std::string_view kName = "logsumexp";
  axis::Use expand() const;
};

// x / sqrt(mean x^2 + eps) * scale + bias, of x or of x - mean x
struct NormOp {
  static constexpr std::string_view kName = "norm";
  axis::Use x, scale = {}, bias = {};  // scale and bias may be absent
  axis::Labels along;
  bool center = false;  // subtracts the mean
  double eps = 0;
  bool is_native = false;  // is to be GroupNormalization

  void fields(Fields& f) {
    f.operand(x);
    f.optional("scale", scale);
    f.optional("bias", bias);
    f.labels("a", along);
    f.attr("center", center);
    f.attr("eps", eps);
    f.mark("native", is_native);
  }
  std::string_view user_name() const { return center ? "layer_norm" : "rms_norm"; }
  axis::Use expand() const;
};

// sum_keys softmax_keys(scale * sum_contracted query key + bias) value
struct AttentionOp {
  static constexpr std::string_view kName = "attention";
  enum Operand : std::size_t { kQuery, kKey, kValue, kBias, kMask };
  axis::Use query, key, value;
  axis::Use bias;  // added to the score; may be absent
  axis::Use mask;  // where it is false the bias is all of the score; may be absent
  axis::Labels contracted;
  axis::Labels group;  // heads of the query that share a key head
  axis::Labels keys;   // positions of the key
  axis::Labels time;   // positions of the query
  double cap = 0;      // the score is cap * tanh(score / cap); 0: it is as it is
  bool is_causal = false;
  double scale = 1;
  bool zero_rows = false;  // rows without keys are 0, not NaN

  void fields(Fields& f) {
    f.operand(query);
    f.operand(key);
    f.operand(value);
    f.optional(bias);
    f.optional(mask);
    f.labels("d", contracted);
    f.labels("g", group);
    f.labels("s", keys);
    f.labels("t", time);
    f.attr("cap", cap);
    f.attr("causal", is_causal);
    f.attr("scale", scale);
    f.attr("zero_rows", zero_rows);
  }
  axis::Use expand() const;
};

// [x_0 cos - x_1 sin, x_1 cos + x_0 sin] along a label of size two
struct RopeOp {
  static constexpr std::string_view kName = "rope";
  axis::Use x, cos, sin;
  axis::Label pair = 0;

  void fields(Fields& f) {
    f.operand(x);
    f.operand(cos);
    f.operand(sin);
    f.label("p", pair);
  }
  axis::Use expand() const;
};

// concat(rope(x[..., :r]), x[..., r:]): the value is not cut, x is one operand
struct PartialRopeOp {
  static constexpr std::string_view kName = "partial_rope";
  axis::Use x, cos, sin;
  axis::Labels pairs;  // labels of the tables that run over the pairs
  axis::Labels head;   // the whole head
  bool is_interleaved = false;

  void fields(Fields& f) {
    f.operand(x);
    f.operand(cos);
    f.operand(sin);
    f.labels("c", pairs);
    f.labels("w", head);
    f.attr("interleaved", is_interleaved);
  }
  axis::Use expand() const;
};

// x along each axis multiplied with a matrix of weights, or looked up by a table of indices
struct ResizeOp {
  static constexpr std::string_view kName = "resize";
  struct Axis {
    axis::Use table;  // weights over (from, to), or indices over (to)
    axis::Label from = 0, to = 0;
  };
  axis::Use x;
  std::vector<Axis> axes;  // one or two
  std::string mode;        // of ONNX Resize
  // Which settings of ONNX's attribute antialias give the weights: both where they agree.
  bool antialias = false, plain = false;

  void fields(Fields& f) {
    f.operand(x);
    f.each(axes, [&](Axis& axis, const std::string& i) {
      f.operand(axis.table);
      f.label("i" + i, axis.from);
      f.label("o" + i, axis.to);
    });
    f.attr("antialias", antialias);
    f.attr("mode", mode);
    f.attr("plain", plain);
  }
  bool is_cubic() const { return mode == "cubic"; }
  bool is_nearest() const { return mode == "nearest"; }
  axis::Use expand() const;
};

// x where x >= 0, slope * x elsewhere
struct PreluOp {
  static constexpr std::string_view kName = "prelu";
  static constexpr axis::Kind kKind = axis::Kind::kPointwise;
  axis::Use x, slope;

  void fields(Fields& f) {
    f.operand(x);
    f.operand(slope);
  }
  axis::Use expand() const;
};

// All of them.
using AllOps = std::tuple<AttentionOp, LogSoftmaxOp, LogSumExpOp, NormOp, PartialRopeOp, PreluOp,
                          ResizeOp, RopeOp, SoftmaxOp>;

}  // namespace jaxport::raise
