#include "coordinator/cluster/run_requests.h"

#include <algorithm>
#include <cstdint>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace mu {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr size_t kLeastLook = 64;

constexpr uint32_t BytesTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
constexpr uint32_t VarintTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_VARINT);
}

void WriteBytes(int field, const std::string& bytes, CodedOutputStream* out) {
  out->WriteVarint32(BytesTag(field));
  out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out->WriteString(bytes);
}

size_t SizeOfBytes(int field, size_t bytes) {
  return CodedOutputStream::VarintSize32(BytesTag(field)) +
         CodedOutputStream::VarintSize32(static_cast<uint32_t>(bytes)) + bytes;
}

void WriteBatches(const BatchRange& range, const std::string& lease, CodedOutputStream* out) {
  constexpr int kLease = pb::BatchRangeProto::kLeaseFieldNumber;
  constexpr int kFirst = pb::BatchRangeProto::kFirstBatchFieldNumber;
  constexpr int kBatches = pb::BatchRangeProto::kBatchesFieldNumber;
  const size_t size = SizeOfBytes(kLease, lease.size()) +
                      CodedOutputStream::VarintSize32(VarintTag(kFirst)) +
                      CodedOutputStream::VarintSize32(range.first_batch) +
                      CodedOutputStream::VarintSize32(VarintTag(kBatches)) +
                      CodedOutputStream::VarintSize32(range.batches);
  out->WriteVarint32(BytesTag(pb::RunRequest::kBatchesFieldNumber));
  out->WriteVarint32(static_cast<uint32_t>(size));
  WriteBytes(kLease, lease, out);
  out->WriteVarint32(VarintTag(kFirst));
  out->WriteVarint32(range.first_batch);
  out->WriteVarint32(VarintTag(kBatches));
  out->WriteVarint32(range.batches);
}

}  // namespace

const std::string& RunRequests::BytesOf(const std::shared_ptr<const pb::LeaseProto>& lease) {
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second->bytes;
  if (leases_.size() >= look_at_) {
    for (auto it = leases_.begin(); it != leases_.end();) {
      const auto old = it++;
      if (old->second->lease.use_count() == 1) leases_.erase(old);
    }
    look_at_ = std::max(kLeastLook, 2 * leases_.size());
  }
  auto added = std::make_unique<const Lease>(Lease{lease, lease->SerializeAsString()});
  return leases_.emplace(lease.get(), std::move(added)).first->second->bytes;
}

std::string RunRequests::Serialize(const pb::RunRequest& header,
                                   const std::vector<BatchRange>& batches,
                                   const std::shared_ptr<const pb::LeaseProto>& upcoming) {
  std::string bytes = header.SerializeAsString();
  if (batches.empty() && upcoming == nullptr) return bytes;
  {
    // Fields of a message may come in any order.
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    for (const BatchRange& range : batches) WriteBatches(range, BytesOf(range.lease), &out);
    if (upcoming != nullptr)
      WriteBytes(pb::RunRequest::kUpcomingFieldNumber, BytesOf(upcoming), &out);
  }  // which cuts what it has not used of the string
  return bytes;
}

}  // namespace mu
