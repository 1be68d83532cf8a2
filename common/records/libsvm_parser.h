// LIBSVM's sparse text: a label, then ID:VALUE for what is not 0 (proto/dataset.proto,
// LibsvmProto).
#pragma once

#include <string>

#include "common/records/record_parser.h"
#include "common/records/sparse_text.h"

namespace mu {

class LibsvmParser final : public RecordParser {
 public:
  explicit LibsvmParser(const muster::LibsvmProto& libsvm);
  // Ids must grow along the line, as LIBSVM itself demands: one that comes twice is a mistake of
  // whoever wrote the file. The observer sees the label's text. A "qid:" of ranking data is
  // refused, since nothing would use it.
  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  bool ParseFeature(absl::string_view text, int64_t* last_id, ColumnSet* columns,
                    std::string* error) const;

  const int64_t features_;
  const SparseLabel label_;
};

}  // namespace mu
