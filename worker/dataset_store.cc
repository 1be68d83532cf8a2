#include "worker/dataset_store.h"

#include <utility>

#include "google/protobuf/util/message_differencer.h"

namespace mu {

absl::StatusOr<std::shared_ptr<DatasetReader>> DatasetStore::Prepare(
    const muster::DatasetProto& dataset) {
  std::shared_ptr<DatasetReader> present = Find(dataset.id());
  if (present != nullptr &&
      google::protobuf::util::MessageDifferencer::Equals(present->dataset(), dataset)) {
    return present;
  }
  return DatasetReader::Create(dataset, files_, most_lease_bytes_);
}

void DatasetStore::Put(std::shared_ptr<DatasetReader> reader) {
  std::shared_ptr<DatasetReader> replaced;
  {
    MutexLock lock(&mutex_);
    auto& place = readers_[reader->dataset().id()];
    if (place == reader) return;
    replaced = std::exchange(place, std::move(reader));
  }
  if (replaced != nullptr) leases_.Drop(replaced.get());
}

std::shared_ptr<DatasetReader> DatasetStore::Find(uint64_t id) const {
  MutexLock lock(&mutex_);
  const auto it = readers_.find(id);
  return it == readers_.end() ? nullptr : it->second;
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
