#include "common/records/foreign_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/compression.h"

namespace mu {
namespace {

using absl::string_view;

// Of text in Latin letters every second byte is 0.
bool IsUtf16(string_view bytes) {
  if (absl::StartsWith(bytes, "\xFF\xFE") || absl::StartsWith(bytes, "\xFE\xFF")) return true;
  constexpr size_t kLooked = 8;
  if (bytes.size() < kLooked) return false;
  bool little = true, big = true;
  for (size_t i = 0; i < kLooked; i += 2) {
    little = little && bytes[i] != 0 && bytes[i + 1] == 0;
    big = big && bytes[i] == 0 && bytes[i + 1] != 0;
  }
  return little || big;
}

// The program that packed it; empty: none.
string_view PackerOf(string_view bytes) {
  if (absl::StartsWith(bytes, "BZh") &&
      absl::StartsWith(bytes.substr(std::min<size_t>(4, bytes.size())), "1AY&SY"))
    return "bzip2";
  constexpr char kXz[] = {'\xFD', '7', 'z', 'X', 'Z', '\0'};
  if (absl::StartsWith(bytes, string_view(kXz, sizeof(kXz)))) return "xz";
  if (absl::StartsWith(bytes, "PK\x03\x04")) return "zip";
  if (absl::StartsWith(bytes, "\x04\x22\x4D\x18")) return "lz4";
  return "";
}

bool IsParquet(string_view bytes) {
  constexpr string_view kMagic = "PAR1";
  // A line may begin so, but not go on with what a page does.
  return absl::StartsWith(bytes, kMagic) && bytes.size() > kMagic.size() &&
         bytes[kMagic.size()] == '\x15';
}

}  // namespace

std::string WhyNotText(string_view first_bytes, string_view path) {
  if (IsUtf16(first_bytes)) {
    return absl::StrCat(path, " is UTF-16, but texts are read as UTF-8; iconv -f UTF-16 -t UTF-8 ",
                        path, " > NEW makes a file of it that can be read");
  }
  if (const string_view packer = PackerOf(first_bytes); !packer.empty()) {
    return absl::StrCat(path, " is packed with ", packer,
                        ", but gzip and zstd alone are unpacked; unpack it, or pack it anew with "
                        "one of these");
  }
  if (IsParquet(first_bytes)) {
    return absl::StrCat(path, " is Parquet, for which there is no reader; docs/job_file.md (data) ",
                        "has the command that makes jsonl of it");
  }
  return "";
}

absl::Status CheckIsText(const pb::DatasetProto& dataset, const std::string& path) {
  if (dataset.has_arrays() || dataset.has_tfrecord()) return absl::OkStatus();
  const auto stream = OpenUnpacked(path);
  if (!stream.ok()) return absl::OkStatus();
  char first[64];
  const absl::StatusOr<size_t> read = (*stream)->Read(first, sizeof(first));
  if (!read.ok()) return absl::OkStatus();
  const std::string why = WhyNotText(string_view(first, *read), path);
  return why.empty() ? absl::OkStatus() : absl::InvalidArgumentError(why);
}

}  // namespace mu
