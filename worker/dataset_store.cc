#include "worker/dataset_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "worker/request_gate.h"

namespace mu {

absl::Status DatasetStore::Install(const muster::DatasetProto& dataset) {
  std::shared_ptr<DatasetReader> replaced;
  {
    MutexLock lock(&mutex_);
    auto& place = readers_[dataset.id()];
    if (place != nullptr &&
        google::protobuf::util::MessageDifferencer::Equals(place->dataset(), dataset)) {
      return absl::OkStatus();
    }
    auto reader = DatasetReader::Create(dataset, files_);
    if (!reader.ok()) {
      if (place == nullptr) readers_.erase(dataset.id());
      return std::move(reader).status();
    }
    replaced = std::exchange(place, *std::move(reader));
  }
  if (replaced != nullptr) leases_.Drop(replaced.get());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<DatasetReader>> DatasetStore::Find(uint64_t id) const {
  MutexLock lock(&mutex_);
  const auto it = readers_.find(id);
  if (it == readers_.end()) {
    return WorkerRefusal(
        pb::ERROR_NOT_INSTALLED,
        absl::StrCat("dataset ", id,
                     " is not installed on this worker: call InstallDataset first"));
  }
  return it->second;
}

void DatasetStore::Clear() {
  std::map<uint64_t, std::shared_ptr<DatasetReader>> dropped;
  {
    MutexLock lock(&mutex_);
    dropped.swap(readers_);
  }
  for (const auto& [id, reader] : dropped) leases_.Drop(reader.get());
}

}  // namespace mu
