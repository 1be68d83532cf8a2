// Files that hold text, but not as the readers of text want it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/dataset.pb.h"

namespace mu {

// What a file that begins with these (unpacked) bytes is, and what to do, where it cannot be read
// as lines of UTF-8: UTF-16, archives of other programs, Parquet. Empty: nothing is known against
// it.
std::string WhyNotText(absl::string_view first_bytes, absl::string_view path);

// INVALID_ARGUMENT with WhyNotText of the file, if the dataset's format is of text lines. OK if the
// file cannot be read, which whoever reads it says.
absl::Status CheckIsText(const muster::DatasetProto& dataset, const std::string& path);

}  // namespace mu
