// What a gradient's lateness does to its learning rate. Pure.
#pragma once

#include <cstdint>

#include "proto/staleness.pb.h"

namespace mu {

// Multiplies the learning rate of a gradient that `late` updates of its variable or table have
// overtaken. In (0, 1], and 1 for one that none has.
//
//   inverse      1 / late (Zhang, Gupta, Lian and Liu, "Staleness-aware Async-SGD for Distributed
//                Deep Learning", IJCAI 2016, section 3)
//   exponential  exp(-0.1 late): the form is that of Chan and Lane ("Distributed Asynchronous
//                Optimization of Convolutional Neural Networks", Interspeech 2014); 0.1 halves the
//                rate at a lateness of 7, where one machine has some 8 workers. Not below 2^-100.
//
// An unknown discount is none.
float DiscountOf(muster::StalenessDiscount discount, uint64_t late);

}  // namespace mu
