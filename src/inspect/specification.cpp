// SPDX-License-Identifier: Apache-2.0
// The specification of a model that exists: long paths first, counts for the rest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "inspect/expect.h"
#include "inspect/graph_view.h"

namespace jaxport::inspect {
namespace {

using Json = nlohmann::ordered_json;
using Path = std::vector<std::size_t>;

// What fits a screen.
constexpr std::size_t kMostPaths = 5, kMostSteps = 12, kMostGraphs = 6, kColumns = 92;

// The longest path over nodes that no path covers yet; the first of several.
Path longest_path(const GraphView& view, const std::vector<bool>& covered) {
  const std::size_t count = covered.size();
  std::vector<std::size_t> length(count, 0), next(count, count);
  std::size_t start = count;
  for (std::size_t i = count; i-- > 0;) {
    if (covered[i]) continue;
    length[i] = 1;
    for (std::size_t user : view.consumers(i)) {
      // Nodes of a valid file are in order; an edge backwards is no part of a path.
      if (user <= i || length[user] + 1 <= length[i]) continue;
      length[i] = length[user] + 1;
      next[i] = user;
    }
    if (start == count || length[i] >= length[start]) start = i;
  }
  Path path;
  for (std::size_t i = start; i < count; i = next[i]) path.push_back(i);
  return path;
}

// Sizes as names that a specification can hold: "2*T + 1" gets a letter of its own.
class SymbolNames {
 public:
  Sizes readable(const Sizes& sizes) {
    Sizes result;
    for (const Size& size : sizes) {
      const auto* name = std::get_if<std::string>(&size);
      result.push_back(name == nullptr ? size : Size(name_for(*name)));
    }
    return result;
  }

 private:
  static bool is_usable(const std::string& text) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return std::ranges::all_of(text, is_word) && text.find('x') == std::string::npos &&
           std::isdigit(static_cast<unsigned char>(text[0])) == 0 && text != "None";
  }

  std::string name_for(const std::string& text) {
    const auto known = names_.find(text);
    if (known != names_.end()) return known->second;
    std::string name = text;
    for (int i = 0; !is_usable(name) || !taken_.insert(name).second; ++i) {
      constexpr std::string_view kLetters = "BCTNMRQYZSH";
      const auto at = static_cast<std::size_t>(i);
      name = at < kLetters.size() ? std::string(1, kLetters[at]) : fmt::format("S{}", at);
    }
    return names_[text] = name;
  }

  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
};

class Writer {
 public:
  explicit Writer(const onnx::Model& model) : views_(views_of(model, true, true)) {}

  Json run() {
    Json specs = Json::array();
    for (std::size_t i = 0; i < views_.size() - left_out(); ++i) add_graph(views_[i], specs);
    Json result{{"specs", std::move(specs)}};
    if (views_[0].unused_inputs().empty()) result["no_unused_inputs"] = true;
    if (has(GraphKind::kFunction)) result["search_functions"] = true;
    if (has(GraphKind::kBody)) result["search_subgraphs"] = true;
    return result;
  }

  // Graphs that do not fit.
  std::size_t left_out() const { return views_.size() - std::min(views_.size(), kMostGraphs); }

 private:
  bool has(GraphKind kind) const {
    return std::ranges::find(views_, kind, &GraphView::kind) != views_.end();
  }

  void add_graph(const GraphView& view, Json& specs) {
    std::vector<bool> covered;
    // A function keeps its constants as nodes; they are data, as initializers are.
    for (const onnx::Node& node : view.graph().nodes) covered.push_back(node.op == "Constant");
    std::vector<bool> shown = covered;
    for (std::size_t i = 0; i < kMostPaths; ++i) {
      const Path path = longest_path(view, covered);
      // A single node says less than a count, unless the graph has no longer path.
      if (path.empty() || (path.size() == 1 && i > 0)) break;
      for (std::size_t node : path) covered[node] = true;
      for (const Path& part : shortened(path)) {
        Json spec = entry(view, "path", text(view, part));
        // The same path elsewhere in the graph says nothing new; its nodes are counted.
        if (std::ranges::find(specs, spec) != specs.end()) continue;
        for (std::size_t node : part) shown[node] = true;
        specs.push_back(std::move(spec));
      }
    }
    const Json counts = counts_of_rest(view, shown);
    if (!counts.empty()) specs.push_back(entry(view, "counts", counts));
  }

  // The beginning and the end of a path that does not fit.
  static std::vector<Path> shortened(const Path& path) {
    if (path.size() <= kMostSteps) return {path};
    constexpr auto kHalf = static_cast<std::ptrdiff_t>(kMostSteps / 2);
    return {Path(path.begin(), path.begin() + kHalf), Path(path.end() - kHalf, path.end())};
  }

  std::string text(const GraphView& view, const Path& path) {
    std::vector<std::string> steps;
    for (std::size_t node : path) {
      Step step = view.step(node);
      if (step.shape) step.shape = symbols_.readable(*step.shape);
      steps.push_back(to_string(step));
    }
    return fmt::format("{}", fmt::join(steps, " -> "));
  }

  static Json counts_of_rest(const GraphView& view, const std::vector<bool>& shown) {
    std::map<std::string, std::int64_t> rest;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (!shown[i]) rest[view.node(i).op] = 0;
    }
    for (auto& [op, count] : rest) {
      count = std::ranges::count_if(view.graph().nodes,
                                    [&](const onnx::Node& node) { return same_op(op, node.op); });
    }
    return rest;
  }

  // A path of the main graph stands alone; the others say where they are.
  Json entry(const GraphView& view, const char* key, Json value) const {
    const bool is_alone = views_.size() == 1;
    if (view.kind() == GraphKind::kMain && is_alone && value.is_string()) return value;
    Json result = Json::object();
    if (!is_alone) result["graph"] = view.name();
    result[key] = std::move(value);
    return result;
  }

  std::vector<GraphView> views_;
  SymbolNames symbols_;
};

std::string dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// A line that is too long, broken after the last `mark` that fits; each new line starts with
// `indent` spaces. Between `close` and `open` a literal ends and the next one begins.
std::string broken_lines(std::string line, std::string_view mark, std::size_t indent,
                         std::string_view close, std::string_view open) {
  std::string lines;
  while (line.size() + indent > kColumns) {
    const auto cut = line.rfind(mark, kColumns - indent - mark.size());
    if (cut == std::string::npos || cut == 0) break;
    const std::size_t end = cut + mark.size();
    lines += fmt::format("{}{}\n{:{}}", line.substr(0, end), close, "", indent);
    line = fmt::format("{}{}", open, line.substr(end));
  }
  return lines + line;
}

std::string python_value(const Json& value, std::size_t indent) {
  // A long path is several literals, which Python joins.
  if (value.is_string()) return broken_lines(dump(value), "-> ", indent, "\"", "\"");
  std::vector<std::string> parts;
  for (const auto& [op, count] : value.items()) {
    parts.push_back(fmt::format("{}: {}", dump(op), dump(count)));
  }
  // The blank after a comma is part of the indentation.
  return broken_lines(fmt::format("{{{}}}", fmt::join(parts, ", ")), ",", indent - 1, "", "");
}

std::string python_entry(const Json& entry) {
  constexpr std::size_t kIndent = 8;
  if (entry.is_string()) return python_value(entry, kIndent);
  std::vector<std::string> parts;
  for (const auto& [key, value] : entry.items()) {
    parts.push_back(fmt::format("\"{}\": {}", key, python_value(value, kIndent + 4)));
  }
  const std::string line = fmt::format("{{{}}}", fmt::join(parts, ", "));
  const bool fits = line.size() + kIndent <= kColumns && line.find('\n') == std::string::npos;
  if (fits) return line;
  return fmt::format("{{{}}}", fmt::join(parts, fmt::format(",\n{:{}}", "", kIndent + 1)));
}

std::string python(const Json& spec, std::size_t left_out) {
  std::string text = "expect_graph(\n    [\n";
  for (const Json& entry : spec["specs"]) text += fmt::format("        {},\n", python_entry(entry));
  if (left_out > 0) text += fmt::format("        # {} more graphs\n", left_out);
  text += "    ],\n";
  for (const auto& [key, value] : spec.items()) {
    if (value == true) text += fmt::format("    {}=True,\n", key);
  }
  return text + ")\n";
}

}  // namespace

std::string specification(const onnx::Model& model, SpecForm form) {
  Writer writer(model);
  const Json spec = writer.run();
  return form == SpecForm::kJson ? dump(spec, 2) + "\n" : python(spec, writer.left_out());
}

}  // namespace jaxport::inspect
