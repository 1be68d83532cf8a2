// What servers do about late gradients, as users write it:
//
//   f.Minimize(loss, {.staleness = mu::Staleness{.discount = mu::StalenessDiscount::kInverse}});
//
// A gradient is late by the updates that its variable or table has had, on its server, since the
// values were read that it was computed from.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/staleness.pb.h"

namespace mu {

// How the learning rate of a late gradient shrinks: common/optimizer/staleness.h.
enum class StalenessDiscount { kNone, kInverse, kExponential };

struct Staleness {
  StalenessDiscount discount = StalenessDiscount::kNone;
  // Later gradients are not applied: their steps run again, with newer values. nullopt: no bound.
  std::optional<uint32_t> max = std::nullopt;
};

inline muster::StalenessProto ToProto(const Staleness& staleness) {
  muster::StalenessProto proto;
  switch (staleness.discount) {
    case StalenessDiscount::kNone:
      break;
    case StalenessDiscount::kInverse:
      proto.set_discount(muster::STALENESS_DISCOUNT_INVERSE);
      break;
    case StalenessDiscount::kExponential:
      proto.set_discount(muster::STALENESS_DISCOUNT_EXPONENTIAL);
      break;
  }
  if (staleness.max.has_value()) proto.set_max(*staleness.max);
  return proto;
}

}  // namespace mu
