// The rules of a job's data sources.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/limits.h"
#include "coordinator/cli/data_keys.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

void ValidateRecords(const pb::JobRecordsProto& records, const std::string& key,
                     std::vector<JobProblem>* problems) {
  if (records.modulo() == 0) {
    problems->push_back(
        {key + ".modulo", "must be at least 1", "write {modulo: 10, keep: [9]}", true});
    return;
  }
  if (records.keep().empty()) {
    problems->push_back({key + ".keep", "names no records", "write {modulo: 10, keep: [9]}", true});
  }
  std::set<uint32_t> seen;
  for (int i = 0; i < records.keep_size(); ++i) {
    const std::string item = absl::StrCat(key, ".keep[", i, "]");
    const uint32_t kept = records.keep(i);
    if (kept >= records.modulo()) {
      problems->push_back({item,
                           absl::StrCat("is ", kept, ", but remainders of ", records.modulo(),
                                        " are 0 to ", records.modulo() - 1),
                           "raise `modulo` or lower it"});
    } else if (!seen.insert(kept).second) {
      problems->push_back({item, absl::StrCat("is ", kept, " a second time"), "remove it"});
    }
  }
}

void ValidateCsv(const pb::SourceProto& source, const std::string& key,
                 std::vector<JobProblem>* problems) {
  const auto one_byte = [&](const std::string& text) {
    return text.size() == 1 && text != "\n" && text != "\r";
  };
  if (source.has_delimiter() && !one_byte(source.delimiter())) {
    problems->push_back(
        {key + ".delimiter", "must be one character", "write for example \",\" or \"\\t\""});
  }
  if (source.has_quote() && !source.quote().empty() && !one_byte(source.quote())) {
    problems->push_back(
        {key + ".quote", "must be one character or empty", "\"\" turns quotes off"});
  } else if (source.has_quote() &&
             source.quote() == (source.has_delimiter() ? source.delimiter() : ",")) {
    problems->push_back(
        {key + ".quote", "is the same as `delimiter`", "write \"\" to turn quotes off"});
  }
}

void ValidateLibsvm(const pb::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems) {
  if (source.features() > 0) return;
  problems->push_back({key + ".features", "must be above every id of the files",
                       "a file with ids from 1 to 123 has features: 124", true});
}

void ValidateLibffm(const pb::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems) {
  ValidateLibsvm(source, key, problems);
  if (source.fields() > 0 && source.fields() <= kMostLibffmFields) return;
  problems->push_back(
      {key + ".fields",
       absl::StrCat("must be above every field of the files, at most ", kMostLibffmFields),
       "a file with fields from 0 to 38 has fields: 39", true});
}

void ValidateIdx(const pb::SourceProto& source, const std::string& key,
                 std::vector<JobProblem>* problems) {
  for (int i = 0; i < source.labels_size(); ++i) {
    if (source.labels(i).empty()) {
      problems->push_back(
          {absl::StrCat(key, ".labels[", i, "]"), "must not be empty", "write a path or a glob"});
    }
  }
  if (source.labels().empty() && key != "data.predict") {
    problems->push_back(
        {key + ".labels", "names no files of labels", "list them in the order of `files`", true});
  }
  if (source.has_scale() && (!std::isfinite(source.scale()) || source.scale() == 0)) {
    problems->push_back({key + ".scale",
                         "must be a finite number other than 0: values are multiplied by it",
                         "leave it out for 1/255"});
  }
  for (int i = 0; i < source.shape_size(); ++i) {
    if (source.shape(i) == 0) {
      problems->push_back({absl::StrCat(key, ".shape[", i, "]"), "must be above 0",
                           "write for example shape: [28, 28]"});
    }
  }
}

// The keys that the source's format does not have.
void RefuseOtherFormatsKeys(const pb::SourceProto& source, unsigned format, const std::string& key,
                            std::vector<JobProblem>* problems) {
  for (const SourceKeyInfo& info : SourceKeys()) {
    if ((info.formats & format) != 0 || !HasField(source, info.key)) continue;
    const bool label = format == kCsvBit && absl::string_view(info.key) == "positive";
    problems->push_back(
        {absl::StrCat(key, ".", info.key),
         absl::StrCat("is for format ", FormatNames(info.formats), ", not for ", source.format()),
         label ? "write it in the label's column" : "remove it"});
  }
}

}  // namespace

void ValidateSource(const pb::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems) {
  const unsigned format = FormatBitOf(source.format());
  if (format == 0) {
    problems->push_back(
        {key + ".format",
         absl::StrCat("must be ", FormatNames(kAllFormats, "or"), ", not `", source.format(), "`"),
         "docs/reference/readers.md describes them", true});
  } else {
    RefuseOtherFormatsKeys(source, format, key, problems);
  }
  if (format == kCsvBit) ValidateCsv(source, key, problems);
  if (format == kLibsvmBit) ValidateLibsvm(source, key, problems);
  if (format == kLibffmBit) ValidateLibffm(source, key, problems);
  if (format == kIdxBit) ValidateIdx(source, key, problems);
  if ((format & (kFieldFormats | kNpyBit)) != 0) ValidateColumns(source, format, key, problems);
  if (format == kNpyBit) {
    if (!source.files().empty()) {
      problems->push_back({key + ".files", "is not for format npy",
                           "write `files` in each column: a column has files of its own"});
    }
  } else if (source.files().empty()) {
    problems->push_back({key + ".files", "names no files", "write a list of paths or globs", true});
  }
  for (int i = 0; i < source.files_size(); ++i) {
    if (source.files(i).empty()) {
      problems->push_back(
          {absl::StrCat(key, ".files[", i, "]"), "must not be empty", "write a path or a glob"});
    }
  }
  if (source.has_records()) ValidateRecords(source.records(), key + ".records", problems);
  if (source.has_on_bad_record() && source.on_bad_record() != "fail" &&
      source.on_bad_record() != "skip") {
    problems->push_back({key + ".on_bad_record",
                         absl::StrCat("must be fail or skip, not `", source.on_bad_record(), "`"),
                         ""});
  }
  if (source.has_visitation() && source.visitation() != "exactly_once" &&
      source.visitation() != "none") {
    problems->push_back(
        {key + ".visitation",
         absl::StrCat("must be exactly_once or none, not `", source.visitation(), "`"), ""});
  } else if (source.visitation() == "none" && key != "data.train") {
    problems->push_back({key + ".visitation",
                         "is for data.train: evaluation and prediction use each record once",
                         "remove it"});
  }
  if (source.has_shuffle() && key != "data.train") {
    problems->push_back({key + ".shuffle",
                         "is for data.train: the order of records changes no evaluation, and "
                         "predictions keep that of the files",
                         "remove it"});
  }
}

}  // namespace mu
