// A product is large and what follows it is cheap: adding a bias or cutting at zero while the
// result is still in the cache spares a pass over memory each, and the buffer between.
//
//   relu(add(matmul(a, b), bias)) -> matmul_bias_relu(a, b, bias)      and its prefixes
//   relu_grad(matmul(a, b), y)    -> matmul_relu_grad(a, b, y)
//
// The fused kernels compute the same bits as the separate ones.
#include "common/exec/draft.h"

namespace mu {
namespace {

class Fusion {
 public:
  explicit Fusion(Draft* draft) : draft_(draft), readers_(draft->specs.size()) {
    for (size_t i = 0; i < draft->nodes.size(); ++i) {
      const DraftNode& node = draft->nodes[i];
      if (node.removed) continue;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        readers_[node.inputs[k]].push_back({static_cast<int>(i), static_cast<int>(k)});
      }
    }
  }

  absl::Status Run() {
    for (DraftNode& node : draft_->nodes) {
      if (!node.removed && node.op == "matmul") MU_RETURN_IF_ERROR(FuseFrom(&node));
    }
    return absl::OkStatus();
  }

 private:
  struct Reader {
    int node;
    int input;
  };

  absl::Status FuseFrom(DraftNode* matmul) {
    DraftNode* current = matmul;
    while (true) {
      DraftNode* const next = OnlyReader(current->first_output);
      const std::string fused = next == nullptr || ShapeIsReadBefore(current->first_output, next)
                                    ? ""
                                    : FusedOp(*current, *next);
      if (fused.empty()) return absl::OkStatus();
      std::vector<int> inputs = current->inputs;
      if (next->inputs.size() == 2) {
        inputs.push_back(next->inputs[0] == current->first_output ? next->inputs[1]
                                                                  : next->inputs[0]);
      }
      Redirect(current->first_output, next->first_output);
      next->op = fused;
      next->inputs = std::move(inputs);
      next->attrs_of = current->attrs_of;
      const int index = static_cast<int>(next - draft_->nodes.data());
      for (size_t k = 0; k < next->inputs.size(); ++k) {
        readers_[next->inputs[k]].push_back({index, static_cast<int>(k)});
      }
      MU_RETURN_IF_ERROR(MakeKernel(*draft_, next));
      current->removed = true;
      current = next;
    }
  }

  // The op of `first` and `second` in one; empty if there is none.
  std::string FusedOp(const DraftNode& first, const DraftNode& second) const {
    const int product = first.first_output;
    const Shape& shape = draft_->specs[product].shape;
    if (draft_->specs[second.first_output].shape != shape) return "";
    if (second.op == "relu" && first.op == "matmul") return "matmul_relu";
    if (second.op == "relu" && first.op == "matmul_bias") return "matmul_bias_relu";
    if (second.op == "relu_grad" && first.op == "matmul" && second.inputs[0] == product &&
        second.inputs[1] != product && draft_->specs[second.inputs[1]].shape == shape) {
      return "matmul_relu_grad";
    }
    if (second.op == "add" && first.op == "matmul" && second.inputs[0] != second.inputs[1]) {
      const Shape& other = draft_->specs[second.inputs[second.inputs[0] == product ? 1 : 0]].shape;
      const bool row = other.rank() == 1 || (other.rank() == 2 && other[0] == 1);
      if (row && shape[1] != kUnknownDim && other[other.rank() - 1] == shape[1])
        return "matmul_bias";
    }
    return "";
  }

  // Fusing changes inputs, so an entry of readers_ may no longer hold.
  bool Reads(const Reader& reader, int value) const {
    const DraftNode& node = draft_->nodes[reader.node];
    return !node.removed && reader.input < static_cast<int>(node.inputs.size()) &&
           node.inputs[reader.input] == value;
  }

  // The one node that reads the elements of `value`; null if there are more, or if it is wanted
  // itself.
  DraftNode* OnlyReader(int value) {
    if (draft_->wanted[value]) return nullptr;
    DraftNode* found = nullptr;
    for (const Reader& reader : readers_[value]) {
      DraftNode& node = draft_->nodes[reader.node];
      if (!Reads(reader, value) || !node.kernel->ReadsElements(reader.input)) continue;
      if (found != nullptr && found != &node) return nullptr;
      found = &node;
    }
    return found;
  }

  // Whether a node before `next` wants the shape of `value`, which will then not be there yet.
  bool ShapeIsReadBefore(int value, const DraftNode* next) const {
    for (const Reader& reader : readers_[value]) {
      if (Reads(reader, value) && &draft_->nodes[reader.node] < next) return true;
    }
    return false;
  }

  // Those that want only the shape of `from` take it from `to`, which has the same.
  void Redirect(int from, int to) {
    for (const Reader& reader : readers_[from]) {
      DraftNode& node = draft_->nodes[reader.node];
      if (!Reads(reader, from) || node.kernel->ReadsElements(reader.input)) continue;
      node.inputs[reader.input] = to;
      readers_[to].push_back(reader);
    }
  }

  Draft* const draft_;
  std::vector<std::vector<Reader>> readers_;
};

}  // namespace

absl::Status FuseMatmuls(Draft* draft) { return Fusion(draft).Run(); }

}  // namespace mu
