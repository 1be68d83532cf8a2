#include "psserver/saves.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

// Attempts; a copy of an older request is hardly on its way any more
constexpr size_t kRemembered = 64;

}  // namespace

absl::Status Saves::Job::GoOn() const {
  MutexLock lock(&saves_->mutex_);
  return Cancelled();
}

absl::Status Saves::Job::Cancelled() const {
  if (cancelled_.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the save was ended: ", cancelled_));
}

absl::Status Saves::Job::Read(const std::function<void()>& read) {
  {
    MutexLock lock(&saves_->mutex_);
    if (!cancelled_.empty()) return Cancelled();
    reading_ = true;
  }
  read();
  MutexLock lock(&saves_->mutex_);
  reading_ = false;
  saves_->changed_.SignalAll();
  return absl::OkStatus();
}

void Saves::Job::OnEndOfReading(std::function<void()> end) {
  {
    MutexLock lock(&saves_->mutex_);
    end_ = std::move(end);
    if (cancelled_.empty()) return;
  }
  saves_->End(this);
}

void Saves::Job::EndReading() { saves_->End(this); }

void Saves::End(Job* job) {
  std::function<void()> end;
  {
    MutexLock lock(&mutex_);
    while (job->reading_) changed_.Wait(&mutex_);
    if (job->end_ == nullptr) return;
    end = std::exchange(job->end_, nullptr);
    job->reading_ = true;
  }
  end();
  MutexLock lock(&mutex_);
  job->reading_ = false;
  changed_.SignalAll();
}

Saves::Result Saves::Run(uint64_t attempt, uint64_t epoch,
                         const std::function<Result(Job*)>& save) {
  std::shared_ptr<Job> job;
  {
    MutexLock lock(&mutex_);
    while (running_ != nullptr) {
      const std::shared_ptr<Job> other = running_;
      if (attempt != 0 && other->attempt_ == attempt) {
        while (!other->done_) changed_.Wait(&mutex_);
        return other->result_;
      }
      if (epoch > other->epoch_ && other->cancelled_.empty())
        other->cancelled_ = "a newer coordinator saves";
      while (!other->done_) changed_.Wait(&mutex_);
    }
    for (const std::shared_ptr<Job>& ended : ended_) {
      if (attempt != 0 && ended->attempt_ == attempt) return ended->result_;
    }
    job = std::shared_ptr<Job>(new Job(this, attempt, epoch));
    running_ = job;
  }
  Result result = save(job.get());
  MutexLock lock(&mutex_);
  job->result_ = result;
  job->done_ = true;
  if (result.ok()) ended_.push_back(job);
  if (ended_.size() > kRemembered) ended_.pop_front();
  running_ = nullptr;
  changed_.SignalAll();
  return result;
}

void Saves::Cancel(const std::string& why) {
  MutexLock lock(&mutex_);
  if (running_ != nullptr && running_->cancelled_.empty()) running_->cancelled_ = why;
}

void Saves::CancelAndWait(const std::string& why) {
  std::shared_ptr<Job> job;
  {
    MutexLock lock(&mutex_);
    job = running_;
    if (job == nullptr) return;
    if (job->cancelled_.empty()) job->cancelled_ = why;
  }
  End(job.get());
}

}  // namespace mu
