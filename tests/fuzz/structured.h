// A fuzz target whose input is one protobuf message: the bytes are its encoding, and mutations
// change its fields (structured_mutator.cc).
//
//   MUSTER_FUZZ_MESSAGE(fuzz::PsCalls) {  // `input` is a const fuzz::PsCalls&
//     ...
//   }
#pragma once

#include <cstddef>
#include <cstdint>

#include "google/protobuf/message.h"
#include "proto/error.pb.h"
#include "tests/fuzz/inputs.pb.h"

namespace mu {

namespace pb = ::muster;
namespace fuzz = ::muster::fuzz;

// The default instance of the target's message, for the mutator.
const google::protobuf::Message& FuzzPrototype();

}  // namespace mu

#define MUSTER_FUZZ_MESSAGE(Type)                                                           \
  static void FuzzOne(const Type& input);                                                   \
  const google::protobuf::Message& mu::FuzzPrototype() { return Type::default_instance(); } \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                 \
    Type input;                                                                             \
    if (!input.ParseFromArray(data, static_cast<int>(size))) return 0;                      \
    FuzzOne(input);                                                                         \
    return 0;                                                                               \
  }                                                                                         \
  static void FuzzOne(const Type& input)
