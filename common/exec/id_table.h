// Where each of some distinct ids is among them. Open addressing with linear probing.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/base/hash.h"
#include "common/exec/aligned_buffer.h"

namespace mu {

class IdTable {
 public:
  // Has no id, and room for `most`. `buffer` and `counter`, zero at first, are kept from one table
  // to the next: an entry counts only if its stamp is that of the table, so nothing is cleared.
  IdTable(AlignedBuffer* buffer, uint64_t* counter, int64_t most) {
    int bits = 6;
    while ((int64_t{1} << bits) < 2 * most) ++bits;
    shift_ = 64 - bits;
    mask_ = (uint64_t{1} << bits) - 1;
    entries_ = static_cast<Entry*>(buffer->Reserve(sizeof(Entry) << bits));
    stamp_ = static_cast<uint32_t>(++*counter);
    if (stamp_ == 0) {  // after 2^32 tables old stamps come again
      std::memset(static_cast<void*>(entries_), 0, buffer->size());
      stamp_ = static_cast<uint32_t>(++*counter);
    }
  }

  // The index that the id was added with; it is added with `next` if it is not there.
  int32_t FindOrAdd(int64_t id, int32_t next) {
    uint64_t at = (static_cast<uint64_t>(id) * kGolden) >> shift_;
    while (true) {
      Entry& entry = entries_[at];
      if (entry.stamp != stamp_) {
        entry = {id, stamp_, next};
        return next;
      }
      if (entry.id == id) return entry.index;
      at = (at + 1) & mask_;
    }
  }

 private:
  struct Entry {
    int64_t id;
    uint32_t stamp;
    int32_t index;
  };

  Entry* entries_;
  uint64_t mask_;
  int shift_;
  uint32_t stamp_;
};

}  // namespace mu
