// SPDX-License-Identifier: Apache-2.0
#include "inspect/expect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "inspect/graph_view.h"
#include "inspect/path_search.h"
#include "inspect/table.h"

namespace jaxport::inspect {
namespace {

std::vector<std::size_t> nodes_of(const GraphView& view, std::string_view op, bool live_only) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < view.graph().nodes.size(); ++i) {
    if (same_op(op, view.node(i).op) && (!live_only || view.is_live(i))) found.push_back(i);
  }
  return found;
}

// "Transpose must be absent: 2 in top (node 3 'a', node 7)", or "" when it is absent.
std::string present(const GraphView& view, const std::string& op) {
  constexpr std::size_t kMostNodes = 5;
  const std::vector<std::size_t> found = nodes_of(view, op, /*live_only=*/true);
  if (found.empty()) return "";
  std::vector<std::string> places;
  for (std::size_t node : found) {
    if (places.size() < kMostNodes) places.push_back(view.describe(node));
  }
  return fmt::format("{} must be absent: {} in {} ({}{})", op, found.size(), view.name(),
                     fmt::join(places, ", "), found.size() > kMostNodes ? ", …" : "");
}

std::string wrong_count(const GraphView& view, const Counts& counts) {
  std::vector<std::string> wrong;
  for (const auto& [op, count] : counts) {
    const auto actual = static_cast<std::int64_t>(nodes_of(view, op, false).size());
    if (actual != count) wrong.push_back(fmt::format("{} {}, not {}", actual, op, count));
  }
  return wrong.empty() ? "" : fmt::format("{} has {}", view.name(), fmt::join(wrong, ", "));
}

// An attribute as JSON, to be compared with what a specification says.
nlohmann::json as_json(const onnx::Attribute& attr) {
  return std::visit(
      [](const auto& value) -> nlohmann::json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor> ||
                      std::is_same_v<T, std::shared_ptr<onnx::Graph>>) {
          return nullptr;
        } else {
          return value;
        }
      },
      attr.value);
}

// Floats of attributes have 32 bits, those of a specification 64; true and false are 1 and 0.
bool same_value(const nlohmann::json& actual, const nlohmann::json& expected) {
  if (actual.is_array() && expected.is_array()) {
    if (actual.size() != expected.size()) return false;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (!same_value(actual[i], expected[i])) return false;
    }
    return true;
  }
  if (expected.is_boolean()) return actual == (expected.get<bool>() ? 1 : 0);
  if (!actual.is_number() || !expected.is_number()) return actual == expected;
  return actual.get<float>() == expected.get<float>();
}

std::string wrong_attribute(const GraphView& view, const std::string& op,
                            const nlohmann::json& wanted) {
  const std::vector<std::size_t> found = nodes_of(view, op, false);
  if (found.empty())
    return fmt::format("{} has no {}, whose attributes are expected", view.name(), op);
  for (std::size_t node : found) {
    for (const auto& [name, expected] : wanted.items()) {
      const onnx::Attribute* attr = view.node(node).attr(name);
      const nlohmann::json actual = attr == nullptr ? nlohmann::json() : as_json(*attr);
      if (same_value(actual, expected)) continue;
      return fmt::format("{} ({}): {} is {}, not {}", op, view.describe(node), name,
                         attr == nullptr ? "absent" : shown(actual), shown(expected));
    }
  }
  return "";
}

// What of an entry does not hold in a graph besides its path.
std::string other_problem(const GraphView& view, const PathSpec& spec) {
  for (const std::string& op : spec.must_absent) {
    if (std::string why = present(view, op); !why.empty()) return why;
  }
  if (std::string why = wrong_count(view, spec.counts); !why.empty()) return why;
  for (const auto& [op, wanted] : spec.attrs) {
    if (std::string why = wrong_attribute(view, op, wanted); !why.empty()) return why;
  }
  return "";
}

// The steps of a path beside the nodes that were found for them.
std::string side_by_side(const GraphView& view, const PathSpec& spec, const Attempt& attempt) {
  std::vector<std::vector<std::string>> rows{{"   ", "expected", "found"}};
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    const std::string expected = to_string(spec.steps[i]);
    if (i < attempt.nodes.size()) {
      const std::size_t node = attempt.nodes[i];
      rows.push_back({"   ", expected, to_string(view.step(node)), view.describe(node)});
    } else if (i > attempt.nodes.size()) {
      rows.push_back({"   ", expected, "-"});
    } else if (attempt.wrong) {
      const std::string why = fmt::format("{}: {}", view.describe(*attempt.wrong), attempt.why);
      rows.push_back({"  >", expected, to_string(view.step(*attempt.wrong)), why});
    } else {
      rows.push_back({"  >", expected, "-", attempt.why});
    }
  }
  return aligned(rows);
}

// One graph in which an entry does not hold. `progress` orders such graphs: the more of the path
// was found, the more the reader learns.
struct Failure {
  std::size_t progress = 0;
  std::string text;
};

std::optional<Failure> failure_in(const GraphView& view, const PathSpec& spec,
                                  const Expectation& expectation) {
  if (!spec.steps.empty()) {
    const Attempt attempt = PathSearch(view, spec, expectation.passthrough).run();
    if (!attempt.why.empty()) {
      return Failure{
          attempt.nodes.size(),
          fmt::format("in {} {} of {} steps were found\n{}", view.name(), attempt.nodes.size(),
                      spec.steps.size(), side_by_side(view, spec, attempt))};
    }
  }
  std::string why = other_problem(view, spec);
  if (why.empty()) return std::nullopt;
  return Failure{spec.steps.size() + 1, why + "\n"};
}

std::string names(const std::vector<GraphView>& views) {
  std::vector<std::string_view> result;
  for (const GraphView& view : views) result.push_back(view.name());
  return fmt::format("{}", fmt::join(result, ", "));
}

// Why no graph fulfils an entry; "" when one does.
std::string unfulfilled_path(const std::vector<GraphView>& views, const PathSpec& spec,
                             const Expectation& expectation) {
  const std::string title = spec.text.empty() ? "counts" : "path " + spec.text;
  std::optional<Failure> worst;
  for (const GraphView& view : views) {
    if (!spec.graphs.empty() && !is_selected(spec.graphs, view)) continue;
    std::optional<Failure> failure = failure_in(view, spec, expectation);
    if (!failure) return "";
    if (!worst || failure->progress > worst->progress) worst = std::move(failure);
  }
  if (!worst) {
    return fmt::format("{}: there is no graph {}; searched were {}\n", title,
                       fmt::join(spec.graphs, ", "), names(views));
  }
  return fmt::format("{}: {}", title, worst->text);
}

std::string unused_inputs(const GraphView& view) {
  const std::vector<std::string> unused = view.unused_inputs();
  return unused.empty()
             ? ""
             : fmt::format("unused inputs of {}: {}\n", view.name(), fmt::join(unused, ", "));
}

}  // namespace

std::string unfulfilled(const onnx::Model& model, const Expectation& expectation) {
  const std::vector<GraphView> views =
      views_of(model, expectation.search_functions, expectation.search_subgraphs);
  std::string report;
  for (const std::string& op : expectation.must_absent) {
    for (const GraphView& view : views) {
      if (const std::string why = present(view, op); !why.empty()) report += why + "\n";
    }
  }
  if (expectation.no_unused_inputs) report += unused_inputs(views[0]);
  for (const GraphView& view : views) {
    if (expectation.no_unused_function_inputs && view.kind() == GraphKind::kFunction) {
      report += unused_inputs(view);
    }
  }
  std::vector<std::string> failures;
  for (const PathSpec& spec : expectation.paths) {
    std::string failure = unfulfilled_path(views, spec, expectation);
    if (!failure.empty()) failures.push_back(std::move(failure));
  }
  const bool is_enough = expectation.any_path && failures.size() < expectation.paths.size();
  if (!is_enough) report += fmt::format("{}", fmt::join(failures, ""));
  return report;
}

}  // namespace jaxport::inspect
