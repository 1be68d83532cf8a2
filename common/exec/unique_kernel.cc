// unique: the distinct ids of several inputs in order of first appearance, and where each id is
// among them.
#include <cstring>

#include "common/base/hash.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

// Open addressing with linear probing. An entry counts only if its stamp is that of the step, so
// the table need not be cleared between steps.
struct Entry {
  int64_t id;
  uint32_t stamp;
  int32_t index;
};

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
    Table table;
    int bits = 6;
    while ((int64_t{1} << bits) < 2 * total) ++bits;
    table.shift = 64 - bits;
    table.mask = (uint64_t{1} << bits) - 1;
    Scratch& scratch = context.scratch();
    AlignedBuffer& buffer = scratch.buffers[0];
    table.entries = static_cast<Entry*>(buffer.Reserve(sizeof(Entry) << bits));
    table.stamp = static_cast<uint32_t>(++scratch.counters[0]);
    if (table.stamp == 0) {  // after 2^32 steps old stamps come again
      std::memset(buffer.Reserve(0), 0, buffer.size());
      table.stamp = static_cast<uint32_t>(++scratch.counters[0]);
    }
    MU_ASSIGN_OR_RETURN(table.ids, context.Output<int64_t>(0, Shape({total})));
    for (int i = 0; i < context.num_inputs(); ++i) {
      const View& ids = context.input(i);
      MU_ASSIGN_OR_RETURN(int32_t* const positions, context.Output<int32_t>(i + 1, ids.shape));
      if (wide_[i]) {
        Insert(table, ids.as<int64_t>(), ids.elements(), positions);
      } else {
        Insert(table, ids.as<int32_t>(), ids.elements(), positions);
      }
    }
    // The same memory, cut to what is there.
    return context.Output<int64_t>(0, Shape({table.count})).status();
  }

 private:
  struct Table {
    Entry* entries;
    uint64_t mask;
    int shift;
    uint32_t stamp;
    int64_t* ids;
    int32_t count = 0;
  };

  template <typename T>
  static void Insert(Table& table, const T* ids, int64_t n, int32_t* positions) {
    int32_t count = table.count;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t id = ids[i];
      uint64_t at = (static_cast<uint64_t>(id) * kGolden) >> table.shift;
      while (true) {
        Entry& entry = table.entries[at];
        if (entry.stamp != table.stamp) {
          entry = {id, table.stamp, count};
          table.ids[count] = id;
          positions[i] = count++;
          break;
        }
        if (entry.id == id) {
          positions[i] = entry.index;
          break;
        }
        at = (at + 1) & table.mask;
      }
    }
    table.count = count;
  }

  std::vector<bool> wide_;
};

absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) { return KernelPtr(new UniqueKernel(spec)); }

}  // namespace

void RegisterUniqueKernel(KernelTable& table) { table.Add("unique", Make); }

}  // namespace mu
