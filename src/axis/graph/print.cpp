// SPDX-License-Identifier: Apache-2.0
// The text form of an axis graph, one node a line, operands first:
//
//   %2[a c] = contract(%0[a b], %1[b c]) f32 a=B b=8 c=16
//   %3[b] = pick[k=1](%2[a b]) f32 a=B b=16 p:a
//   out y: f32[16,1] = %3[a -> a 1]
//
// Node numbers count the nodes that the outputs need. Each line has label names of its own, in
// order of first appearance; [a (b c)] are the axes of the operand, a product in brackets. Then
// follow the dtype, the size of every label, the labels of every role and the readable name. A
// primitive with several results has #i after its name. Outputs are patterns from the axes of the
// node to the dims of the result, 1 for a unit dim; labels only on the right repeat the value. The
// regions of a node follow it, indented.
#include <fmt/format.h>

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "axis/graph/graph.h"
#include "front/text.h"

namespace jaxport::axis {
namespace {

std::string label_name(Label label) {
  const char letter = static_cast<char>('a' + label % 26);
  return label < 26 ? std::string(1, letter) : fmt::format("{}{}", letter, label / 26);
}

std::string product(const Labels& labels) {
  std::string text;
  for (Label label : labels) text += (text.empty() ? "" : " ") + label_name(label);
  return labels.size() == 1 ? text : labels.empty() ? "1" : "(" + text + ")";
}

std::string pattern(const Pattern& axes) {
  std::string text;
  for (const Labels& axis : axes) text += (text.empty() ? "" : " ") + product(axis);
  return text;
}

class Printer {
 public:
  explicit Printer(const Program& program, std::string indent = "")
      : program_(program), indent_(std::move(indent)) {}

  front::MarkedText run() {
    for (const Node* node : topological(program_)) {
      numbers_.emplace(node, numbers_.size());
      print(*node);
    }
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) print_output(i);
    return {std::move(text_), std::move(marks_)};
  }

 private:
  void print(const Node& node) {
    marks_.emplace_back(text_.size(), node.location);
    text_ +=
        fmt::format("{}%{}[{}] = {}", indent_, numbers_.at(&node), pattern(node.out), call(node));
    if (node.prim && node.prim->out.size() > 1) text_ += fmt::format("#{}", node.result);
    text_ += "(";
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      const Edge& edge = node.edges[i];
      text_ +=
          fmt::format("{}%{}[{}]", i == 0 ? "" : ", ", numbers_.at(edge.node), pattern(edge.axes));
    }
    if (node.kind == Kind::kConstant) text_ += constant(node.data);
    text_ += fmt::format(") {}", name_of(node.dtype));
    for (std::size_t label = 0; label < node.sizes.size(); ++label) {
      text_ +=
          fmt::format(" {}={}", label_name(static_cast<Label>(label)), node.sizes[label].str());
    }
    for (const auto& [name, labels] : node.roles) {
      text_ += fmt::format(" {}:{}", name, product(labels));
    }
    if (!node.path.empty()) text_ += fmt::format(" \"{}\"", node.path);
    text_ += "\n";
    if (node.prim) print_regions(*node.prim);
  }

  void print_regions(const PrimInfo& prim) {
    if (!printed_.insert(&prim).second) return;
    for (std::size_t i = 0; i < prim.regions.size(); ++i) {
      text_ += fmt::format("{}  region {}\n", indent_, i);
      const front::MarkedText region = Printer(*prim.regions[i], indent_ + "    ").run();
      for (const auto& [place, location] : region.marks) {
        marks_.emplace_back(text_.size() + place, location);
      }
      text_ += region.text;
    }
  }

  static std::string call(const Node& node) {
    front::Eqn eqn;
    eqn.primitive = node.name;
    eqn.attrs = node.prim ? node.prim->eqn.attrs : node.attrs;
    return front::print(front::Function{}, eqn);
  }

  // Small constants by value, others by nothing: their shape is in the sizes.
  static std::string constant(const Tensor& data) {
    constexpr std::int64_t kMostShown = 8;
    const bool is_real =
        is_float(data.dtype) || is_integer(data.dtype) || data.dtype == DType::kBool;
    if (!is_real || data.size() > kMostShown) return "";
    std::string text;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      if (i > 0) text += " ";
      text +=
          is_float(data.dtype) ? fmt::format("{}", data.at(i)) : fmt::format("{}", data.int_at(i));
    }
    return text;
  }

  void print_output(std::size_t i) {
    const View& view = program_.outputs[i];
    std::map<Label, Label> names;
    auto rename = [&](Pattern axes) {
      for (Labels& axis : axes) {
        for (Label& label : axis) {
          label = names.emplace(label, static_cast<Label>(names.size())).first->second;
        }
      }
      return axes;
    };
    const Pattern axes = rename(view.use.labels), dims = rename(view.dims);
    const bool named = i < program_.output_names.size();
    text_ += fmt::format("{}out {}: {} = %{}[{} -> {}]\n", indent_,
                         named ? program_.output_names[i] : fmt::format("{}", i),
                         front::to_string(program_.output_types[i]), numbers_.at(view.use.node),
                         pattern(axes), pattern(dims));
  }

  const Program& program_;
  std::string indent_;
  std::unordered_map<const Node*, std::size_t> numbers_;
  std::unordered_set<const PrimInfo*> printed_;  // with its regions
  std::string text_;
  std::vector<std::pair<std::size_t, front::LocationId>> marks_;  // of nodes
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run().text; }
front::MarkedText print_marked(const Program& program) { return Printer(program).run(); }

}  // namespace jaxport::axis
