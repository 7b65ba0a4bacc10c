// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/region.h"

#include <map>

namespace jaxport::axis {
namespace {

std::unique_ptr<Program> empty_program(const Program& outer) {
  auto program = std::make_unique<Program>();
  program->dims = outer.dims;
  program->graph = std::make_shared<Graph>(outer.dims);
  program->locations = outer.locations;
  program->preferences = outer.preferences;
  program->unrolling = outer.unrolling;
  return program;
}

// A leaf of one graph, over the same dims, in another one.
View copied(const View& view, const Graph& from, Graph& to) {
  std::map<Label, Label> copies;
  auto relabelled = [&](Pattern pattern) {
    for (Labels& axis : pattern) {
      for (Label& label : axis) {
        auto [entry, is_new] = copies.try_emplace(label);
        if (is_new) entry->second = to.label(from.size(label));
        label = entry->second;
      }
    }
    return pattern;
  };
  const Node& node = *view.use.node;
  const Use leaf = node.kind == Kind::kIota ? to.iota(to.label(node.sizes[0]), node.dtype)
                                            : to.constant(node.data, node.path);
  return {{leaf.node, leaf.labels.empty() ? Pattern{} : relabelled(view.use.labels)},
          relabelled(view.dims)};
}

}  // namespace

RegionBuilder::RegionBuilder(const Inliner& outer)
    : outer_(*outer.program().graph),
      program_(empty_program(outer.program())),
      inliner_(*program_, outer.location()) {}

View RegionBuilder::variable(const front::Type& type) {
  program_->inputs.push_back({type, ""});
  return input_view(graph(), program_->inputs.size() - 1, type, "");
}

View RegionBuilder::invariant(const front::Type& type, const View& outer) {
  View view = variable(type);
  const Kind kind = outer.use.node->kind;
  const bool is_known = kind == Kind::kConstant || kind == Kind::kIota;
  return is_known ? copied(outer, outer_, graph()) : view;
}

std::unique_ptr<Program> RegionBuilder::finish(std::vector<View> outputs,
                                               std::vector<front::Type> types) {
  program_->outputs = std::move(outputs);
  program_->output_types = std::move(types);
  return std::move(program_);
}

}  // namespace jaxport::axis
