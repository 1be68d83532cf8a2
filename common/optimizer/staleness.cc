#include "common/optimizer/staleness.h"

#include <algorithm>
#include <cmath>

namespace mu {

float DiscountOf(muster::StalenessDiscount discount, uint64_t late) {
  constexpr double kPerUpdate = 0.1, kMost = 69.3;  // exp(-69.3) is about 2^-100
  switch (discount) {
    case muster::STALENESS_DISCOUNT_INVERSE:
      return 1.0f / static_cast<float>(std::max<uint64_t>(1, late));
    case muster::STALENESS_DISCOUNT_EXPONENTIAL:
      return static_cast<float>(std::exp(-std::min(kMost, kPerUpdate * static_cast<double>(late))));
    default:
      return 1;
  }
}

}  // namespace mu
