// The formats, the kinds of columns and their keys in a job file, as tables: what `check` accepts
// where, and what docs/reference/readers.md says.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mu {

// Bits of FormatInfo and ColumnKindInfo, in the order of Formats() and ColumnKinds().
enum FormatBit : unsigned {
  kCriteoTsvBit = 1,
  kCsvBit = 2,
  kLibsvmBit = 4,
  kLibffmBit = 8,
  kJsonlBit = 16,
  kTfrecordBit = 32,
  kIdxBit = 64,
  kNpyBit = 128,
  kFieldFormats = kCsvBit | kJsonlBit | kTfrecordBit,  // those of named columns
  kAllFormats = 255,
};
enum KindBit : unsigned {
  kNumberBit = 1,
  kIdBit = 2,
  kHashBit = 4,
  kLabelBit = 8,
  kClassBit = 16,
  kVocabularyBit = 32,
  kBucketBit = 64,
  kCrossBit = 128,
  kListKinds = kIdBit | kHashBit | kClassBit | kVocabularyBit | kBucketBit,
  kSeveralKinds = kListKinds | kNumberBit,
  kAllKinds = 255,
};

struct FormatInfo {
  const char* name;
  unsigned bit;
  const char* record;   // what one is, and of which file
  const char* columns;  // that it gives
};
struct ColumnKindInfo {
  const char* name;
  unsigned bit;
  const char* meaning;
  const char* type;
  const char* missing;  // what a missing field becomes
};
// A key of a source that not every format has.
struct SourceKeyInfo {
  const char* key;
  unsigned formats;
  const char* meaning;
  const char* by_default;
};
// A key of a column.
struct ColumnKeyInfo {
  const char* key;
  unsigned formats;
  unsigned kinds;
  const char* meaning;
  const char* by_default;
};

absl::Span<const FormatInfo> Formats();
absl::Span<const ColumnKindInfo> ColumnKinds();
absl::Span<const SourceKeyInfo> SourceKeys();
absl::Span<const ColumnKeyInfo> ColumnKeys();

// 0: there is none of this name.
unsigned FormatBitOf(absl::string_view name);
unsigned KindBitOf(absl::string_view name);

// "csv, jsonl and tfrecord".
std::string FormatNames(unsigned formats, absl::string_view last_word = "and");
std::string KindNames(unsigned kinds, absl::string_view last_word = "and");

}  // namespace mu
