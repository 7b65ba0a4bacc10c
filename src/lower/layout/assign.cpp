// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/assign.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "jaxport/error.h"
#include "lower/emit/emission.h"
#include "lower/layout/classes.h"

namespace jaxport::lower {
namespace {

using axis::Kind;
using axis::Node;

// Each try emits the whole program, so the search ends after about kMostNodes emitted nodes: small
// programs are tried up to kMostTries times, large ones kFewestTries times.
constexpr std::size_t kMostNodes = 1500, kFewestTries = 3, kMostTries = 64;
// Collecting wishes is cheaper than a try, but it looks at the whole program too.
constexpr std::size_t kSweepsPerTry = 4;

// Where much is moved, so many elements are worth a node: a Transpose of them takes 20 to 60 us.
constexpr std::int64_t kElementsOfNode = 1 << 16;

// The price of moving the elements of a value; a size that is not known counts as 1.
double price_of_size(const onnx::Model& model, onnx::ValueId id) {
  const auto& type = model.values[id].type;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // beyond, it does not matter how many
  std::int64_t elements = 1;
  if (!type || !type->shape) return 0;
  for (const Dim& size : *type->shape) {
    if (!size.is_static()) continue;
    elements = std::min(elements, kMost) * std::min(size.value(), kMost);
  }
  return static_cast<double>(elements / kElementsOfNode);
}

double price_of(const Draft& draft) {
  double sum = 0;
  for (const onnx::Node& node : draft.model.graph.nodes) {
    const bool is_transpose = node.op == "Transpose", is_expand = node.op == "Expand";
    sum += is_transpose ? kTransposePrice : is_expand ? kExpandPrice : 1;
    if (is_transpose || is_expand) sum += price_of_size(draft.model, node.out[0]);
  }
  return sum;
}

// A node that follows no wish; nullptr is an output.
bool is_fixed(const Node* node) {
  return !node || node->kind == Kind::kInput || node->kind == Kind::kPrim ||
         node->kind == Kind::kIota;
}

// An edge of the consumer that leads to the value.
const axis::Edge& edge_between(const Node& consumer, const Node* value) {
  return *std::ranges::find_if(consumer.edges,
                               [&](const axis::Edge& edge) { return edge.node->id == value->id; });
}

// A region takes its sizes from the graph around it.
void add_sizes(const axis::Program& region, onnx::Builder& builder, ShapeValues& shapes) {
  Dims sizes;
  for (const std::string& symbol : region.dims->symbols()) {
    sizes.push_back(region.dims->symbol(symbol));
  }
  shapes.add_input(builder.input("", {DType::kF32, sizes}), sizes);
}

class Search {
 public:
  Search(Plan& plan, int opset, bool is_region)
      : plan_(plan), facts_(plan.facts), opset_(opset), is_region_(is_region) {}

  Draft run() {
    best_ = drafted(plan_.choice);
    price_ = price_of(best_);
    const bool is_forced = std::ranges::all_of(best_.paid, [](const Paid& paid) {
      return is_fixed(paid.value) && is_fixed(paid.consumer);
    });
    if (is_forced) return std::move(best_);
    tries_ = std::clamp(kMostNodes / std::max<std::size_t>(1, facts_.order().size()), kFewestTries,
                        kMostTries);
    sweeps_ = kSweepsPerTry * tries_;
    const Classes classes(facts_);
    fixed_.resize(facts_.order().size());
    improve(classes.wishes(plan_.choice.wishes, opset_));
    improve(Choice{Wishes(fixed_.size()), {}});  // nobody wishes anything
    while (repair(classes)) {
    }
    return std::move(best_);
  }

 private:
  Draft drafted(const Choice& choice) const {
    Draft draft;
    draft.model.dims = facts_.program.dims;
    onnx::Builder builder(draft.model, opset_, onnx::DTypeRule::kAny);
    ShapeValues shapes(builder);
    if (is_region_) add_sizes(facts_.program, builder, shapes);
    Emission emission{plan_, choice, builder, shapes};
    emit_model(emission);
    draft.paid = emission.values.paid();
    return draft;
  }

  bool is_exhausted() const { return tries_ == 0 || sweeps_ == 0; }

  // Takes the choice if it is cheaper.
  bool improve(Choice choice) {
    if (tries_ == 0) return false;
    --tries_;
    try {
      Draft draft = drafted(choice);
      const double price = price_of(draft);
      if (price >= price_) return false;
      best_ = std::move(draft);
      price_ = price;
    } catch (const NoConversion&) {
      return false;  // the best choice so far emits
    }
    plan_.choice = std::move(choice);
    return true;
  }

  // The same with these layouts fixed; the other values follow the wishes.
  bool improve(Wishes fixed) {
    if (is_exhausted()) return false;
    --sweeps_;
    Wishes wishes = collect_wishes(facts_, opset_, fixed);
    if (wishes == plan_.choice.wishes || !improve(Choice{std::move(wishes), plan_.choice.ready})) {
      return false;
    }
    fixed_ = std::move(fixed);
    return true;
  }

  // Moves the border of classes at which something was paid for, to either side of it.
  bool repair(const Classes& classes) {
    const std::vector<Paid> paid = best_.paid;
    for (const Paid& border : paid) {
      if (is_exhausted()) return false;
      if (move(classes, border.value, border.to) || take_over(classes, border) ||
          move(classes, border.value, border.from) || hoist(border)) {
        return true;
      }
    }
    return false;
  }

  bool move(const Classes& classes, const Node* value, const Layout& layout) {
    if (is_fixed(value)) return false;
    const Node& node = facts_.node(value);
    return move(classes, value, to_arrangement(layout, node.out, node.sizes));
  }

  bool move(const Classes& classes, const Node* value, const Arrangement& dims) {
    const std::size_t member = facts_.index(value);
    if (!tried_.emplace(classes.of(member), classes.common(member, dims)).second) return false;
    Wishes fixed = fixed_;
    classes.assign(fixed, member, {kStrong, dims});
    return improve(std::move(fixed));
  }

  // The consumer takes the value as it is.
  bool take_over(const Classes& classes, const Paid& border) {
    if (is_fixed(border.consumer)) return false;
    const Node& consumer = facts_.node(border.consumer);
    const axis::Edge& edge = edge_between(consumer, border.value);
    const Arrangement dims = to_arrangement(border.from, edge.axes, consumer.sizes);
    const LabelSet out(consumer.sizes.size(), consumer.out), have(consumer.sizes.size(), dims);
    const bool same = out.has_all(axis::flatten(dims)) && have.has_all(axis::flatten(consumer.out));
    return same && move(classes, border.consumer, dims);
  }

  // The value is converted where it is produced, so that earlier users find the converted one too.
  bool hoist(const Paid& border) {
    if (facts_.users(border.value).size() < 2) return false;
    Choice choice = plan_.choice;
    choice.ready.push_back({border.value, border.to});
    return improve(std::move(choice));
  }

  Plan& plan_;
  const Facts& facts_;
  int opset_;
  bool is_region_;
  Draft best_;
  Wishes fixed_;  // of the best choice
  double price_ = kInfinity;
  std::size_t tries_ = 0, sweeps_ = 0;                   // that are left
  std::set<std::pair<std::size_t, Arrangement>> tried_;  // class, dims
};

}  // namespace

Draft cheapest_draft(Plan& plan, int opset) { return Search(plan, opset, false).run(); }

void choose_region_layouts(Plan& plan, int opset) {
  for (const axis::Program* region : axis::regions(plan.facts.program)) {
    Plan& inner = *plan.regions.at(region);
    choose_region_layouts(inner, opset);
    Search(inner, opset, true).run();
  }
}

}  // namespace jaxport::lower
