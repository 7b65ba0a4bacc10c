// SPDX-License-Identifier: Apache-2.0
#include "target/scan_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Arg;
using onnx::Args;
using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::TensorType;
using onnx::Value;
using onnx::ValueId;

Node made(std::string_view op, std::vector<ValueId> in, ValueId out, Args args = {}) {
  Node node;
  node.op = op;
  node.in = std::move(in);
  node.out = {out};
  for (Arg& arg : args) node.attrs.push_back(std::move(arg.attribute));
  return node;
}

class LoopOfScan {
 public:
  LoopOfScan(Model& model, Graph& graph, Builder& op, Node scan)
      : model_(model), graph_(graph), op_(op), scan_(std::move(scan)) {
    body_ = std::get<std::shared_ptr<Graph>>(scan_.attr("body")->value);
    elements_ = static_cast<std::size_t>(int_attribute(scan_, "num_scan_inputs", 0));
    states_ = scan_.in.size() - elements_;
  }

  void write() {
    op_.set_origin(model_.origins[scan_.origin]);
    Node loop;
    loop.op = "Loop";
    loop.origin = scan_.origin;
    loop.in = {length().id(), op_.scalar(1, DType::kBool).id()};
    const auto states = static_cast<std::ptrdiff_t>(states_);
    loop.in.insert(loop.in.end(), scan_.in.begin(), scan_.in.begin() + states);
    fill_body();
    loop.attrs = {Arg("body", body_).attribute};
    loop.out.assign(scan_.out.begin(), scan_.out.begin() + states);
    std::vector<std::pair<std::size_t, ValueId>> turned;  // collected results in another order
    for (std::size_t i = states_; i < scan_.out.size(); ++i) {
      const bool stays =
          scan_.out[i] == onnx::kAbsent ||
          (setting("scan_output_axes", i) == 0 && setting("scan_output_directions", i) == 0);
      loop.out.push_back(stays ? scan_.out[i] : collected(i));
      if (!stays) turned.emplace_back(i, loop.out.back());
    }
    graph_.nodes.push_back(std::move(loop));
    for (const auto& [i, id] : turned) turn(i, id);
  }

 private:
  // Axis or direction of operand or result `i`; axes count from the front.
  std::int64_t setting(std::string_view name, std::size_t i) const {
    const auto settings = ints_attribute(scan_, name);
    return settings ? (*settings)[i - states_] : 0;
  }

  ValueId new_value(DType dtype, Dims shape) {
    model_.values.push_back({TensorType{dtype, std::move(shape)}, ""});
    return static_cast<ValueId>(model_.values.size() - 1);
  }

  Value length() {
    const Value scanned(&op_, scan_.in[states_]);
    const std::int64_t axis = setting("scan_input_axes", states_);
    const Dim& size = scanned.shape()[static_cast<std::size_t>(axis)];
    if (size.is_static()) return op_.scalar(static_cast<double>(size.value()), DType::kI64);
    const Value sizes = op_.Shape(scanned, Args{{"start", axis}, {"end", axis + 1}});
    return op_.Squeeze(sizes, op_.ints({0}));
  }

  void fill_body() {
    const ValueId step = new_value(DType::kI64, {}), go = new_value(DType::kBool, {});
    const ValueId goes_on = new_value(DType::kBool, {});
    std::vector<Node> nodes = std::exchange(body_->nodes, {});
    for (std::size_t i = states_; i < scan_.in.size(); ++i) take_element(i, step);
    body_->nodes.push_back(made("Identity", {go}, goes_on));
    std::ranges::move(nodes, std::back_inserter(body_->nodes));
    body_->inputs.resize(states_);
    body_->inputs.insert(body_->inputs.begin(), {step, go});
    body_->outputs.insert(body_->outputs.begin(), goes_on);
  }

  // The element of a step takes the place of the body's input.
  void take_element(std::size_t i, ValueId step) {
    const std::int64_t axis = setting("scan_input_axes", i);
    ValueId place = step;
    if (setting("scan_input_directions", i) != 0) {
      place = new_value(DType::kI64, {});
      const Value last = length() - 1;
      body_->nodes.push_back(made("Sub", {last.id(), step}, place));
    }
    body_->nodes.push_back(
        made("Gather", {scan_.in[i], place}, body_->inputs[i], {{"axis", axis}}));
  }

  // What Loop collects of result `i`: the steps come first.
  ValueId collected(std::size_t i) {
    TensorType type = *model_.values[scan_.out[i]].type;
    if (type.shape) {
      const auto at = type.shape->begin() + setting("scan_output_axes", i);
      std::rotate(type.shape->begin(), at, at + 1);
    }
    model_.values.push_back({std::move(type), ""});
    return static_cast<ValueId>(model_.values.size() - 1);
  }

  void turn(std::size_t i, ValueId id) {
    Value value(&op_, id);
    if (setting("scan_output_directions", i) != 0) {
      constexpr std::int64_t kStart = std::numeric_limits<std::int64_t>::min();
      value = op_.Slice(value, op_.ints({-1}), op_.ints({kStart}), op_.ints({0}), op_.ints({-1}));
    }
    const std::int64_t axis = setting("scan_output_axes", i);
    if (axis == 0) {
      graph_.nodes.back().out = {scan_.out[i]};
      return;
    }
    Ints order;
    for (std::size_t dim = 1; dim < value.rank(); ++dim)
      order.push_back(static_cast<std::int64_t>(dim));
    order.insert(order.begin() + axis, 0);
    graph_.nodes.push_back(made("Transpose", {value.id()}, scan_.out[i], {{"perm", order}}));
  }

  Model& model_;
  Graph& graph_;
  Builder& op_;
  Node scan_;
  std::shared_ptr<Graph> body_;
  std::size_t elements_, states_;
};

}  // namespace

bool write_scans_as_loops(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_scan = [](const Node& node) { return node.op == "Scan" && node.domain.empty(); };
    if (std::ranges::none_of(graph.nodes, is_scan)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (is_scan(node)) {
        LoopOfScan(model, graph, op, std::move(node)).write();
      } else {
        graph.nodes.push_back(std::move(node));
      }
    }
    return true;
  });
}

}  // namespace jaxport::target
