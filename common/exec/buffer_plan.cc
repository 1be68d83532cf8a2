#include "common/exec/buffer_plan.h"

#include <algorithm>
#include <limits>

namespace mu {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();  // read after the last node
constexpr int64_t kAssumedSize = 2048;  // of an axis that is not known, for comparing sizes
constexpr int64_t kTooDifferent = 8;

class Assigner {
 public:
  Assigner(bool reuse, Plan* plan)
      : reuse_(reuse),
        plan_(*plan),
        root_(plan->specs.size()),
        last_read_(plan->specs.size(), -1),
        buffer_(plan->specs.size(), -1) {}

  void Run() {
    FindRoots();
    FindLastReads();
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) Place(i);
  }

 private:
  struct Free {
    int buffer;
    int64_t bytes;
  };

  bool MadeByAlias(const PlannedNode& node) const { return node.kernel->MayAlias(); }

  // The value whose memory a value may be in.
  void FindRoots() {
    for (size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<int>(v);
    for (const PlannedNode& node : plan_.nodes) {
      if (MadeByAlias(node)) root_[node.first_output] = root_[node.inputs[0]];
    }
  }

  void Read(int value, int position) {
    int& last = last_read_[root_[value]];
    last = std::max(last, position);
  }

  void FindLastReads() {
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      const PlannedNode& node = plan_.nodes[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.kernel->ReadsElements(static_cast<int>(k))) Read(node.inputs[k], i);
      }
      for (size_t k = 0; k < node.places.size(); ++k)
        Read(node.first_output + static_cast<int>(k), i);
    }
    for (const PlannedRows& rows : plan_.rows) Read(rows.ids, kNever);
    for (const PlannedVariableUpdate& update : plan_.variable_updates) {
      Read(update.value, kNever);
      if (update.other >= 0) Read(update.other, kNever);
    }
    for (const PlannedProduct& product : plan_.products) Read(product.x, kNever);
    for (const PlannedRowsUpdate& update : plan_.row_updates) {
      Read(update.ids, kNever);
      Read(update.gradients, kNever);
    }
    for (const int value : plan_.returns) Read(value, kNever);
    if (plan_.part != PlanPart::kSlice) return;
    for (const PlannedAccumulation& accumulation : plan_.accumulations) {
      for (const int value : accumulation.inputs) Read(value, kNever);
    }
  }

  int64_t AssumedBytes(int value) const {
    int64_t bytes = static_cast<int64_t>(ElementSize(plan_.specs[value].dtype));
    for (const int64_t dim : plan_.specs[value].shape)
      bytes *= dim == kUnknownDim ? kAssumedSize : dim;
    return std::max<int64_t>(bytes, 64);
  }

  // The input whose memory output 0 of node `i` takes over; -1 for none.
  int InPlaceInput(int i) const {
    const PlannedNode& node = plan_.nodes[i];
    if (!reuse_ || node.places.size() != 1) return -1;
    const TensorSpec& out = plan_.specs[node.first_output];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const int value = node.inputs[k];
      const TensorSpec& in = plan_.specs[value];
      if (!node.kernel->MayOverwrite(static_cast<int>(k)) || in.shape != out.shape) continue;
      if (ElementSize(in.dtype) != ElementSize(out.dtype)) continue;
      if (buffer_[root_[value]] < 0 || last_read_[root_[value]] != i) continue;
      bool shared = false;  // another input with the same memory under another shape
      for (const int other : node.inputs) shared |= other != value && root_[other] == root_[value];
      if (!shared) return static_cast<int>(k);
    }
    return -1;
  }

  int NewBuffer() { return plan_.buffers++; }

  int TakeBuffer(int64_t bytes) {
    int best = -1;
    int64_t best_ratio = kTooDifferent;
    for (int f = static_cast<int>(free_.size()) - 1; f >= 0;
         --f) {  // the last one freed is in the cache
      const int64_t ratio = std::max(free_[f].bytes, bytes) / std::min(free_[f].bytes, bytes);
      if (ratio < best_ratio) {
        best = f;
        best_ratio = ratio;
      }
    }
    if (best < 0) return NewBuffer();
    const int buffer = free_[best].buffer;
    free_.erase(free_.begin() + best);
    return buffer;
  }

  void Place(int i) {
    PlannedNode& node = plan_.nodes[i];
    const int in_place = InPlaceInput(i);
    for (size_t k = 0; k < node.places.size(); ++k) {
      const int value = node.first_output + static_cast<int>(k);
      PlannedPlace& place = node.places[k];
      if (MadeByAlias(node)) {
        place.buffer = NewBuffer();  // stays empty unless the shapes differ at run time
        continue;
      }
      if (in_place >= 0) {
        place.in_place_input = in_place;
        place.spare = NewBuffer();
        const int taken = root_[node.inputs[in_place]];
        buffer_[value] = buffer_[taken];
        buffer_[taken] = -1;  // not to be freed with it
      } else {
        buffer_[value] = reuse_ ? TakeBuffer(AssumedBytes(value)) : NewBuffer();
      }
      place.buffer = buffer_[value];
    }
    if (!reuse_) return;
    for (const int value : node.inputs) FreeAfter(i, root_[value]);
    for (size_t k = 0; k < node.places.size(); ++k) {
      FreeAfter(i, root_[node.first_output + static_cast<int>(k)]);
    }
  }

  void FreeAfter(int i, int root) {
    if (last_read_[root] != i || buffer_[root] < 0) return;
    free_.push_back({buffer_[root], AssumedBytes(root)});
    buffer_[root] = -1;
  }

  const bool reuse_;
  Plan& plan_;
  std::vector<int> root_;       // by value
  std::vector<int> last_read_;  // by root: position of the last node that reads it
  std::vector<int>
      buffer_;  // by root: its buffer while it is alive; -1 if it is not ours to give away
  std::vector<Free> free_;
};

}  // namespace

void AssignBuffers(bool reuse, Plan* plan) { Assigner(reuse, plan).Run(); }

}  // namespace mu
