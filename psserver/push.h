// A push, checked whole before anything of it is applied. Not thread safe; applying locks partition
// after partition.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/psserver.pb.h"
#include "psserver/compute_threads.h"
#include "psserver/core/push.h"
#include "psserver/payload.h"
#include "psserver/store/store.h"
#include "psserver/table_keys.h"

namespace mu {

// The partitions that a push names, from its header alone.
uint32_t CountPartitions(const muster::PushRequest& request);
void VisitPartitions(const muster::PushRequest& request, PushPartitions::Visit visit);
// Whether gradients come as the factors of products, which take long to compute.
bool HasProducts(const muster::PushRequest& request);

class PushPlan {
 public:
  // `directory` and `payload` outlive the plan. `threads` share the products that are gradients, a
  // partition at a time. INVALID_ARGUMENT for malformed requests, updates of
  // a kind that the variable or table does not take, and updates that are not finite (names the
  // variable or table); OUT_OF_RANGE for ids that a table does not have.
  static absl::StatusOr<PushPlan> Check(const StoreDirectory& directory,
                                        const muster::PushRequest& request,
                                        absl::Span<const char> payload, ComputeThreads* threads);
  // Takes the partitions that inherited the push out of the plan.
  void Skip(const AdmittedPush& push);
  // Scales the learning rates of gradients that are late; the push has entered.
  void Discount(const AdmittedPush& push, muster::StalenessDiscount discount);
  // Cannot fail. Once.
  void Apply();

  // What it changes; for a round that adds several pushes up.
  struct VariablePart {
    PartitionKey key;
    VariablePartition* partition;
    muster::VariableUpdate::Kind kind;  // GRADIENT, ASSIGN_ADD or ASSIGN
    muster::DType dtype;
    bool moving_average;  // a round takes the mean of additions
    float moving_part;    // not 0: an addition is what the variable moves towards
    const void* update;
    StepRates rates;  // of a gradient
    // `update` has only these rows, each once; else all.
    std::optional<absl::Span<const int64_t>> rows;
  };
  const std::vector<VariablePart>& variables() const { return variables_; }
  const std::vector<RowSegment>& segments() const { return segments_; }
  const std::vector<const float*>& gradients() const { return gradients_; }  // of each segment
  const std::vector<StepRates>& rates() const { return rates_; }             // the same

 private:
  explicit PushPlan(absl::Span<const char> payload)
      : payload_(std::make_unique<AlignedPayload>(payload)) {}
  absl::Status AddVariable(const StoreDirectory& directory, const muster::VariableUpdate& update,
                           PayloadReader* reader);
  // What the update adds to the partition or to some of its rows, or gives them, or its gradient,
  // whole. What comes in another form has memory of the plan; that of a product is computed last,
  // by ComputeProducts.
  struct Given {
    const char* values = nullptr;
    size_t elements = 0;
    std::optional<absl::Span<const int64_t>> rows = std::nullopt;
  };
  absl::StatusOr<Given> UpdateOf(const StoredVariable& variable,
                                 const muster::VariableUpdate& update, PayloadReader* reader);
  // Memory for what is computed. INVALID_ARGUMENT for a second update of the partition.
  absl::StatusOr<char*> Expand(const StoredVariable& variable, const muster::VariableUpdate& update,
                               size_t bytes);
  absl::StatusOr<Given> Scattered(const StoredVariable& variable,
                                  const muster::VariableUpdate& update, PayloadReader* reader);
  absl::StatusOr<Given> ProductGradient(const StoredVariable& variable,
                                        const muster::VariableUpdate& update,
                                        PayloadReader* reader);
  absl::Status AddGradients(PayloadReader* reader);
  // INVALID_ARGUMENT for those that are not finite.
  absl::Status ComputeProducts(ComputeThreads* threads);
  // Of what has the optimizer. INVALID_ARGUMENT if it needs a step that the push does not say, or
  // if a rate is beyond a float.
  absl::StatusOr<StepRates> RatesOf(const RowOptimizer& optimizer, absl::string_view what,
                                    const std::string& name) const;

  std::unique_ptr<AlignedPayload> payload_;
  std::vector<std::vector<uint64_t>> expanded_;
  std::vector<std::vector<int64_t>> scattered_rows_;
  std::set<PartitionKey> expanded_keys_;
  // Of the last update, if that was a product's gradient.
  struct LastProduct {
    uint32_t variable;
    uint32_t rows;
    const float* x;
  };
  std::optional<LastProduct> last_product_;
  // A gradient [rows, columns] of a partition: the transposed dy [batch, rows] times x [batch,
  // columns].
  struct Product {
    const VariablePartition* partition;
    const std::string* name;  // of the variable
    int64_t batch;
    const float* dy;
    const float* x;
    float* gradient;
  };
  std::vector<Product> products_;
  std::vector<VariablePart> variables_;
  std::vector<RowSegment> segments_;
  std::vector<const float*> gradients_;  // of each segment
  std::vector<StepRates> rates_;         // of each segment
  PushStep step_;
};

}  // namespace mu
