// What an Assign request gives a value to, checked whole before anything of it is changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/psserver.pb.h"
#include "psserver/core/server_core.h"
#include "psserver/store/store.h"

namespace mu {

class AssignPlan {
 public:
  // `request` outlives the plan. INVALID_ARGUMENT for a partition that is not held here, a value of
  // another size, NaN and infinity, rows that come twice and a request without a place;
  // OUT_OF_RANGE for rows that the partition does not have.
  static absl::StatusOr<AssignPlan> Check(std::shared_ptr<const StoreDirectory> directory,
                                          const muster::AssignRequest& request);
  // As the core knows it. Valid as long as the plan.
  PsAssignment assignment() const;
  // Some of a table's rows do not exist yet.
  bool creates_rows() const;
  // Cannot fail.
  void Apply() const;

 private:
  AssignPlan(std::shared_ptr<const StoreDirectory> directory, const muster::AssignRequest& request)
      : directory_(std::move(directory)), request_(request) {}
  absl::Status CheckVariable();
  absl::Status CheckTable();
  absl::Status CheckValue(uint64_t row_bytes, uint64_t rows, bool floats) const;

  std::shared_ptr<const StoreDirectory> directory_;
  const muster::AssignRequest& request_;
  std::string name_;
  VariablePartition* variable_ = nullptr;  // or table_
  TablePartition* table_ = nullptr;
};

}  // namespace mu
