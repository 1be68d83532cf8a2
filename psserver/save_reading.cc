#include "psserver/save_reading.h"

namespace mu {

absl::Status SaveReading::Read(const std::function<void()>& read) {
  {
    MutexLock lock(&mutex_);
    while (reading_) changed_.Wait(&mutex_);
    reading_ = true;
  }
  // Looked at after that: whoever has ended the save either is seen here or waits in End.
  absl::Status status = goes_on_();
  if (status.ok()) read();
  MutexLock lock(&mutex_);
  reading_ = false;
  changed_.SignalAll();
  return status;
}

void SaveReading::OnEnd(std::function<void()> end) {
  {
    MutexLock lock(&mutex_);
    end_ = std::move(end);
  }
  if (!goes_on_().ok()) End();
}

void SaveReading::End() {
  std::function<void()> end;
  {
    MutexLock lock(&mutex_);
    while (reading_) changed_.Wait(&mutex_);
    if (end_ == nullptr) return;
    end = std::exchange(end_, nullptr);
    reading_ = true;
  }
  end();
  MutexLock lock(&mutex_);
  reading_ = false;
  changed_.SignalAll();
}

}  // namespace mu
