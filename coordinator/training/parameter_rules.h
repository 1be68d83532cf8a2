// What a job file says of some of the model's variables and tables (`parameters`), applied as the
// model creates them. Not thread safe.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/variable_factory.h"
#include "proto/job.pb.h"

namespace mu {

class RuledFactory : public VariableFactory {
 public:
  // Both outlive it.
  RuledFactory(const muster::JobProto& job, VariableFactory* factory)
      : job_(job),
        factory_(factory),
        used_(static_cast<size_t>(job.parameters_size())),
        cuts_(used_.size()) {}

  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override;
  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override;

  // Once the model is whole: a line for each rule that matched nothing, or whose partitioner cuts
  // nothing, which begins with its key.
  std::vector<std::string> Problems() const;
  // The same of rules that leave nothing to train; empty: something is, or the model itself has
  // nothing. Of a run that only reads values this is no problem.
  std::string NothingToTrain() const;
  // INVALID_ARGUMENT with the first of Problems.
  absl::Status Check() const;

 private:
  // Sets what the rules say, the last one that says it; `takes_optimizer` if it may be trained.
  template <typename Spec>
  void Apply(bool takes_optimizer, Spec* spec);

  const muster::JobProto& job_;
  VariableFactory* const factory_;
  std::vector<bool> used_;  // by rule
  std::vector<bool> cuts_;  // by rule: it has a partitioner, and matched a variable
  bool trains_ = false;     // something that was created
  int frozen_by_ = -1;      // the last rule that froze something which the model trains
  std::set<std::string> names_;
};

}  // namespace mu
