#include "worker/data/lease_data.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/hash.h"

namespace mu {

LeaseData::LeaseData(ColumnSet columns, Bad bad, uint64_t permutation, uint32_t batch_size)
    : columns_(std::move(columns)), bad_(std::move(bad)), batch_size_(batch_size) {
  order_.resize(columns_.rows());
  std::iota(order_.begin(), order_.end(), 0);
  if (permutation == 0) return;
  SplitMix random(permutation);
  for (uint32_t i = records(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

Batch LeaseData::MakeBatch(uint32_t index) const {
  const uint64_t begin = std::min<uint64_t>(uint64_t{index} * batch_size_, records());
  const uint64_t end = std::min<uint64_t>(begin + batch_size_, records());
  return columns_.Gather(absl::MakeConstSpan(order_).subspan(begin, end - begin));
}

}  // namespace mu
