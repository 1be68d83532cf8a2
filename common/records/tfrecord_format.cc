#include "common/records/tfrecord_format.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/records/example_parser.h"

namespace mu {
namespace {

template <typename T>
T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

class FrameFinder final : public RecordFinder {
 public:
  FindResult Find(const char* begin, const char* end, bool last, uint64_t line,
                  FoundRecord* found) const override {
    found->next = begin;
    found->line = found->next_line = line;
    const auto left = static_cast<uint64_t>(end - begin);
    if (left < kTfrecordHead) {
      if (!last) return FindResult::kMore;
      return left == 0 ? FindResult::kEnd
                       : Broken(
                             "the file ends within a record's length: copy it anew, or take it "
                             "out of `files`",
                             found);
    }
    const auto length = Load<uint64_t>(begin);
    if (Load<uint32_t>(begin + 8) != MaskedCrc32c(begin, 8)) {
      return Broken(
          "the checksum of a record's length is wrong: this is no TFRecord file, or it is damaged",
          found);
    }
    if (length > kMaxTfrecord)
      return Broken(
          absl::StrCat("a record of ", length, " bytes is above the limit of ", kMaxTfrecord),
          found);
    if (left < length + kTfrecordFrame) {
      if (!last) return FindResult::kMore;
      return Broken(absl::StrCat("the file ends within a record of ", length,
                                 " bytes: copy it anew, or take it out of `files`"),
                    found);
    }
    found->text = absl::string_view(begin, length + kTfrecordFrame);
    found->next = begin + length + kTfrecordFrame;
    found->next_line = line + 1;
    return FindResult::kFound;
  }

 private:
  static FindResult Broken(std::string problem, FoundRecord* found) {
    found->problem = std::move(problem);
    return FindResult::kBroken;
  }
};

class FrameParser final : public RecordParser {
 public:
  explicit FrameParser(std::shared_ptr<const FieldColumns> columns)
      : example_(std::move(columns)) {}
  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override {
    const absl::string_view message = record.substr(kTfrecordHead, record.size() - kTfrecordFrame);
    if (Load<uint32_t>(message.data() + message.size()) !=
        MaskedCrc32c(message.data(), message.size())) {
      *error = "the record's checksum is wrong: the file is damaged";
      return false;
    }
    return example_.Parse(message, columns, error);
  }

 private:
  const ExampleParser example_;
};

}  // namespace

FindResult TfrecordFormat::FindHead(int /*part*/, const char* begin, const char* /*end*/,
                                    bool /*last*/, FoundRecord* head) const {
  head->text = {};
  head->next = begin;
  head->line = head->next_line = 1;
  return FindResult::kFound;
}

absl::StatusOr<FileFormat> TfrecordFormat::Open(int /*part*/, absl::string_view /*head*/) const {
  FileFormat format;
  format.finder = std::make_unique<FrameFinder>();
  format.parser = std::make_unique<FrameParser>(columns_);
  return format;
}

std::string TfrecordFrame(absl::string_view message) {
  const uint64_t length = message.size();
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t length_crc = MaskedCrc32c(frame.data(), frame.size());
  const uint32_t message_crc = MaskedCrc32c(message.data(), message.size());
  frame.append(reinterpret_cast<const char*>(&length_crc), sizeof(length_crc));
  frame.append(message.data(), message.size());
  frame.append(reinterpret_cast<const char*>(&message_crc), sizeof(message_crc));
  return frame;
}

}  // namespace mu
