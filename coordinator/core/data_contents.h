// Whether data is still what it was when a checkpoint was taken. Pure.
//
// A worker compares the file that it reads with the leases that it is given. But a job that is
// continued makes its leases of the files as they are now, so only the checkpoint tells what they
// were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/data_plan.h"
#include "proto/checkpoint.pb.h"
#include "proto/dataset.pb.h"

namespace mu {

// A manifest holds at most so many hashes of a data set.
inline constexpr size_t kMostContents = 64;

// Of each file, FileLayout::contents; of more than kMostContents files, one of every few files that
// follow each other. Path, inode and time do not matter, so that data may be moved or copied.
std::vector<uint64_t> ContentsOf(const DataLayout& data);

// What positions say instead of the layout's fingerprint where leases were lengthened to hold a
// batch, which earlier programs did not do: they do not take such a position for one of theirs.
uint64_t FingerprintOfLengthened(uint64_t fingerprint);

// Whether `data` is that of the checkpoint with this position. `named`: the dataset with its files,
// for messages; if it has none, they are numbered.
// INVALID_ARGUMENT: it is cut in another way, ordered in another way, or has other numbers of
// records. FAILED_PRECONDITION: files have other contents. Positions of earlier programs do not say
// what the contents were, and nothing is compared.
absl::Status CheckSameData(const DataLayout& data, const muster::DatasetPositionProto& position,
                           const muster::DatasetProto& named);

}  // namespace mu
