// SPDX-License-Identifier: Apache-2.0
#include "explore/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "explore/flow.h"
#include "explore/model_data.h"
#include "front/text.h"
#include "onnx/walk.h"
#include "raise/engine/raised.h"

namespace jaxport::explore {
namespace {

using front::LocationId;

// Names in a file may be any bytes; those that are not UTF-8 are replaced.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Pairs of a line and the equation on it.
Json marked_text(const front::MarkedText& marked) {
  Json marks = Json::array();
  std::size_t line = 0, place = 0;
  for (const auto& [offset, location] : marked.marks) {
    line += static_cast<std::size_t>(
        std::count(marked.text.begin() + static_cast<std::ptrdiff_t>(place),
                   marked.text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
    place = offset;
    if (location != front::kNoLocation) marks.push_back({line, location});
  }
  return {{"text", marked.text}, {"marks", std::move(marks)}};
}

std::set<LocationId> locations_of(const front::MarkedText& marked) {
  std::set<LocationId> found;
  for (const auto& [offset, location] : marked.marks) found.insert(location);
  return found;
}

// Remembers each form of a program.
class Recorder : public compile::Observer {
 public:
  void on_program(const front::Module& module) override {
    locations_ = module.locations;
    equations_ = equations_of(module);
    program_ = front::print_marked(module, {.locations = false, .constants = false});
    // A program is compiled again when an equation of it is left to the user.
    rules_.clear();
    remarks_.clear();
    made_.clear();
  }

  void on_raised(const axis::Program& program, std::span<const raise::Remark> remarks) override {
    raised_ = axis::print_marked(program);
    for (const raise::Raised& raised : raise::raised_nodes(program)) {
      rules_.try_emplace(raised.location, raised.name);
    }
    for (const raise::Remark& remark : remarks) {
      remarks_[remark.location].push_back(remark.rule + ": " + remark.reason);
    }
  }

  // A node that a later stage wrote in the place of another one keeps its result, not its op.
  void on_model(std::string_view stage, const onnx::Model& model) override {
    onnx::for_each_graph_of(model, [&](const onnx::Graph& graph) {
      for (const onnx::Node& node : graph.nodes) {
        if (node.out.empty()) continue;
        auto& [op, made] = made_[node.out[0]];
        if (std::exchange(op, node.op) != node.op) made = stage;
      }
    });
  }

  std::string data(const onnx::Model& model) const {
    Texts sources;
    Json data =
        model_data(model, sources, [&](const onnx::Node& node) { return facts(model, node); });
    data["program"] = marked_text(program_);
    data["raised"] = marked_text(raised_);
    data["equations"] = equation_data(model, sources);
    data["sources"] = sources.all();
    data["runtimes"] = runtime_data(model);
    return dump(data);
  }

 private:
  NodeFacts facts(const onnx::Model& model, const onnx::Node& node) const {
    NodeFacts facts;
    facts.equation = model.origins.at(node.origin).location;
    if (facts.equation < equations_.size()) facts.layer = equations_[facts.equation].layer;
    const auto made = node.out.empty() ? made_.end() : made_.find(node.out[0]);
    if (made != made_.end()) facts.made = made->second.second;
    return facts;
  }

  Json equation_data(const onnx::Model& model, Texts& sources) const {
    std::set<LocationId> alive;
    onnx::for_each_graph_of(model, [&](const onnx::Graph& graph) {
      for (const onnx::Node& node : graph.nodes) {
        alive.insert(model.origins.at(node.origin).location);
      }
    });
    const auto raised = standing_for(equations_, locations_of(raised_));
    const auto nodes = standing_for(equations_, alive);
    Json all = Json::array();
    for (LocationId id = 0; id < equations_.size(); ++id) {
      const Equation& equation = equations_[id];
      Json to{{"primitive", equation.primitive}};
      if (auto source = sources.add(front::to_string(locations_[id]))) to["source"] = source;
      if (!locations_[id].library.empty()) to["library"] = sources.add(locations_[id].library);
      if (!equation.layer.empty()) to["layer"] = equation.layer;
      to["raised"] = raised[id];
      to["nodes"] = nodes[id];
      if (const auto rule = rules_.find(id); rule != rules_.end()) to["rule"] = rule->second;
      if (const auto found = remarks_.find(id); found != remarks_.end())
        to["remarks"] = found->second;
      all.push_back(std::move(to));
    }
    return all;
  }

  std::vector<front::Location> locations_;
  std::vector<Equation> equations_;
  front::MarkedText program_, raised_;
  std::unordered_map<LocationId, std::string> rules_;
  std::unordered_map<LocationId, std::vector<std::string>> remarks_;
  // By result: the op, and the stage that chose it.
  std::unordered_map<onnx::ValueId, std::pair<std::string, std::string>> made_;
};

}  // namespace

std::string data_of(const onnx::Model& model) {
  Texts sources;
  Json data = model_data(model, sources, {});
  data["sources"] = sources.all();
  data["runtimes"] = runtime_data(model);
  return dump(data);
}

std::string data_of(const front::Module& module, const compile::Options& options) {
  Recorder recorder;
  const onnx::Model model = compile::compile(module, options, nullptr, &recorder);
  return recorder.data(model);
}

}  // namespace jaxport::explore
