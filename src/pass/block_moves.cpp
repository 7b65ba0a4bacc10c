// SPDX-License-Identifier: Apache-2.0
// Reshape, Transpose, Reshape that move blocks of an [N, C, H, W] image between depth and space are
// DepthToSpace or SpaceToDepth, which ONNX Runtime runs 2 to 9 times as fast.
#include <algorithm>

#include "onnx/schema.h"
#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Node;

// A transposition of five dims; neighbours that stay neighbours are one dim.
struct Move {
  Dims dims;
  Ints perm;
};

// Joins neighbours that stay neighbours, and puts a unit dim in front when there are only four.
Move canonical(const Dims& dims, const Ints& perm) {
  Move move;
  std::vector<std::int64_t> place(dims.size(), 0);  // of each dim among the joined ones
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto at = std::ranges::find(perm, static_cast<std::int64_t>(i));
    const bool joins = i > 0 && at != perm.begin() && *(at - 1) == static_cast<std::int64_t>(i) - 1;
    if (joins) {
      move.dims.back() = move.dims.back() * dims[i];
    } else {
      move.dims.push_back(dims[i]);
    }
    place[i] = std::ssize(move.dims) - 1;
  }
  for (std::int64_t dim : perm) {
    const std::int64_t joined = place[dim];
    if (move.perm.empty() || move.perm.back() != joined) move.perm.push_back(joined);
  }
  if (move.dims.size() == 4) {
    move.dims.insert(move.dims.begin(), Dim(1));
    for (std::int64_t& dim : move.perm) ++dim;
    move.perm.insert(move.perm.begin(), 0);
  }
  return move;
}

struct BlockOp {
  std::string_view op;
  std::int64_t size;
  std::string_view mode;
};

// [N, C, H, W] -> [N, C / size^2, H * size, W * size]
std::optional<BlockOp> depth_to_space(const Dims& x, const Dims& y, const Move& move) {
  if (move.perm != Ints{0, 3, 1, 4, 2} || !move.dims[1].is_static()) return std::nullopt;
  const std::int64_t size = move.dims[1].value();
  if (y != Dims{x[0], y[1], x[2] * size, x[3] * size} || !(y[1] * size * size == x[1])) {
    return std::nullopt;
  }
  if (move.dims == Dims{x[0], size, size, y[1] * x[2], x[3]})
    return {{"DepthToSpace", size, "DCR"}};
  if (move.dims == Dims{x[0] * y[1], size, size, x[2], x[3]})
    return {{"DepthToSpace", size, "CRD"}};
  return std::nullopt;
}

// [N, C, H, W] -> [N, size^2 * C, H / size, W / size]
std::optional<BlockOp> space_to_depth(const Dims& x, const Dims& y, const Move& move) {
  if (move.perm != Ints{0, 2, 4, 1, 3} || !move.dims[2].is_static()) return std::nullopt;
  const std::int64_t size = move.dims[2].value();
  const bool fits = x == Dims{y[0], x[1], y[2] * size, y[3] * size} && y[1] == x[1] * size * size &&
                    move.dims == Dims{x[0], x[1] * y[2], size, y[3], size};
  return fits ? std::optional(BlockOp{"SpaceToDepth", size, ""}) : std::nullopt;
}

bool fold_into(Local& local, Node& node) {
  const Node* transpose = local.producer(node.in[0], "Transpose");
  const Node* split = transpose ? local.producer(transpose->in[0], "Reshape") : nullptr;
  if (!split) return false;
  const Dims *x = local.shape(split->in[0]), *middle = local.shape(transpose->in[0]),
             *y = local.shape(node.out[0]);
  const auto perm = ints_attribute(*transpose, "perm");
  if (!x || !middle || !y || !perm || x->size() != 4 || y->size() != 4) return false;
  if (local.type(node.out[0])->dtype != DType::kF32) return false;
  const Move move = canonical(*middle, *perm);
  if (move.dims.size() != 5) return false;
  auto found = depth_to_space(*x, *y, move);
  if (!found) found = space_to_depth(*x, *y, move);
  if (!found) return false;
  node.op = found->op;
  node.in = {split->in[0]};
  node.attrs = {onnx::Attribute{"blocksize", found->size}};
  if (!found->mode.empty()) node.attrs.push_back({"mode", std::string(found->mode)});
  return true;
}

constexpr LocalRule kBlockMoves[] = {{"Reshape", fold_into}};

}  // namespace

std::size_t fold_block_moves(onnx::Model& model) {
  // Models of others may be older than what is known of DepthToSpace.
  return model.opset() < onnx::kOldestOpset ? 0 : apply_rules(model, kBlockMoves);
}

}  // namespace jaxport::pass
