// unique: the distinct ids of several inputs in order of first appearance, and where each id is
// among them.
#include "common/exec/id_table.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

class UniqueKernel : public Kernel {
 public:
  explicit UniqueKernel(const NodeSpec& spec) {
    for (const TensorSpec& input : spec.inputs) wide_.push_back(input.dtype == kInt64);
  }

  absl::Status Run(KernelContext& context) const override {
    int64_t total = 0;
    for (int i = 0; i < context.num_inputs(); ++i) total += context.input(i).elements();
    if (total > INT32_MAX / 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(total, " ids in one step are more than ", INT32_MAX / 4));
    }
    Scratch& scratch = context.scratch();
    IdTable table(&scratch.buffers[0], &scratch.counters[0], total);
    MU_ASSIGN_OR_RETURN(int64_t* const distinct, context.Output<int64_t>(0, Shape({total})));
    int32_t count = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const View& ids = context.input(i);
      MU_ASSIGN_OR_RETURN(int32_t* const positions, context.Output<int32_t>(i + 1, ids.shape));
      if (wide_[i]) {
        count = Insert(ids.as<int64_t>(), ids.elements(), table, count, distinct, positions);
      } else {
        count = Insert(ids.as<int32_t>(), ids.elements(), table, count, distinct, positions);
      }
    }
    // The same memory, cut to what is there.
    return context.Output<int64_t>(0, Shape({count})).status();
  }

 private:
  // Returns how many there are now.
  template <typename T>
  static int32_t Insert(const T* ids, int64_t n, IdTable table, int32_t count, int64_t* distinct,
                        int32_t* positions) {
    for (int64_t i = 0; i < n; ++i) {
      const int32_t at = table.FindOrAdd(ids[i], count);
      if (at == count) distinct[count++] = ids[i];
      positions[i] = at;
    }
    return count;
  }

  std::vector<bool> wide_;
};

absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) { return KernelPtr(new UniqueKernel(spec)); }

}  // namespace

void RegisterUniqueKernel(KernelTable& table) { table.Add("unique", Make); }

}  // namespace mu
