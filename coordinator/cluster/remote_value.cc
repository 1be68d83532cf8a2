#include "coordinator/cluster/remote_value.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"

namespace mu {
namespace {

// Drops the first `count` batches.
void SkipBatches(uint32_t count, std::vector<BatchRange>* batches) {
  auto range = batches->begin();
  for (; range != batches->end() && range->batches <= count; ++range) count -= range->batches;
  batches->erase(batches->begin(), range);
  if (batches->empty()) return;
  batches->front().first_batch += count;
  batches->front().batches -= count;
}

}  // namespace

uint64_t FunctionResult::samples() const {
  uint64_t total = 0;
  for (const Step& step : steps_) total += step.samples;
  return total;
}

absl::StatusOr<Tensor> FunctionResult::Get(size_t step, const std::string& name) const {
  if (step >= steps_.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("step ", step, " did not run: the function ran ", steps_.size(), " steps"));
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] != name) continue;
    if (i >= steps_[step].returns.size()) {
      return absl::OutOfRangeError(absl::StrCat("step ", step, " had no records"));
    }
    return steps_[step].returns[i];
  }
  return absl::NotFoundError(absl::StrCat("the function returns no '", name,
                                          "'; it returns: ", absl::StrJoin(names_, ", ")));
}

absl::StatusOr<double> FunctionResult::Mean(const std::string& name) const {
  double sum = 0, weight = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].returns.empty()) continue;
    MU_ASSIGN_OR_RETURN(const Tensor value, Get(i, name));
    if (value.dtype() != kFloat32 || value.elements() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has shape ", value.shape().ToString(), " and type ",
                       std::string(DTypeName(value.dtype())), "; Mean wants a float32 scalar"));
    }
    const double w = steps_[i].samples > 0 ? steps_[i].samples : 1;
    sum += w * *value.data<float>();
    weight += w;
  }
  if (weight == 0) return absl::OutOfRangeError("no step had records");
  return sum / weight;
}

absl::StatusOr<FunctionResult::Step> FunctionState::Parse(const pb::StepResult& step) {
  FunctionResult::Step parsed;
  parsed.samples = step.samples();
  parsed.gap = absl::Microseconds(step.gap_us());
  for (const auto& value : step.returns()) {
    auto tensor = Tensor::FromProto(value);
    if (!tensor.ok()) return absl::InternalError(std::string(tensor.status().message()));
    parsed.returns.push_back(*std::move(tensor));
  }
  for (const auto& record : step.marked_records())
    parsed.marked.push_back({record.before(), record.reason()});
  return parsed;
}

void FunctionState::AddStep(const pb::StepResult& step, FunctionResult::Step parsed) {
  MutexLock lock(&mutex_);
  result_.steps_.push_back(std::move(parsed));
  result_.bad_records_ += step.bad_records();
  if (result_.first_bad_record_.empty()) result_.first_bad_record_ = step.bad_record_message();
}

void FunctionState::SetBatches(std::vector<BatchRange> batches) {
  SkipBatches(first_step_, &batches);
  MutexLock lock(&mutex_);
  result_.batches_ = std::move(batches);
}

void FunctionState::Finish(absl::Status status) {
  std::vector<std::function<void()>> when_done;
  {
    MutexLock lock(&mutex_);
    if (done_) return;
    done_ = true;
    status_ = std::move(status);
    when_done.swap(when_done_);
  }
  changed_.SignalAll();
  for (const auto& done : when_done) done();
}

void FunctionState::WhenDone(std::function<void()> done) {
  {
    MutexLock lock(&mutex_);
    if (!done_) {
      when_done_.push_back(std::move(done));
      return;
    }
  }
  done();
}

void FunctionState::NoteWait() const {
  MutexLock lock(&mutex_);
  if (!done_ && on_wait_ != nullptr) on_wait_();
}

bool FunctionState::Done() const {
  MutexLock lock(&mutex_);
  return done_;
}

bool FunctionState::WaitFor(absl::Duration timeout) const {
  const absl::Time until = SteadyNow() + timeout;
  MutexLock lock(&mutex_);
  if (!done_ && on_wait_ != nullptr) on_wait_();
  for (absl::Time now = SteadyNow(); !done_ && now < until; now = SteadyNow())
    changed_.WaitFor(&mutex_, until - now);
  return done_;
}

absl::StatusOr<FunctionResult> FunctionState::Wait() const {
  MutexLock lock(&mutex_);
  if (!done_ && on_wait_ != nullptr) on_wait_();
  while (!done_) changed_.Wait(&mutex_);
  if (!status_.ok()) return status_;
  return result_;
}

absl::StatusOr<FunctionResult> RemoteValue::Fetch() const {
  if (error_ != nullptr) return error_->Report();
  if (state_ == nullptr)
    return absl::FailedPreconditionError("this RemoteValue belongs to no call");
  return state_->Wait();
}

}  // namespace mu
