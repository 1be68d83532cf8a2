#include "common/rpc/feed_kinds.h"

#include "proto/worker.pb.h"

namespace mu {
namespace {

std::vector<std::string> KindsOf(const muster::FeedRequest& request) {
  std::vector<std::string> kinds;
  if (request.has_hello()) kinds.push_back("Hello");
  if (request.leases_size() > 0) kinds.push_back("Lease");
  if (request.runs_size() > 0) kinds.push_back("Run");
  if (request.unwanted_runs_size() > 0) kinds.push_back("Unwanted");
  if (request.forgotten_leases_size() > 0) kinds.push_back("Forget");
  if (request.last()) kinds.push_back("Last");
  if (kinds.empty()) kinds.push_back("Confirm");
  return kinds;
}

std::vector<std::string> KindsOf(const muster::FeedReply& reply) {
  bool result = false, handed_back = false, end = false;
  for (const std::string& bytes : reply.replies()) {
    muster::RunReply run;
    if (!run.ParseFromString(bytes)) continue;
    result |= run.steps_size() > 0;
    handed_back |= run.handed_back();
    end |= run.has_end();
  }
  std::vector<std::string> kinds;
  if (result) kinds.push_back("Result");
  if (handed_back) kinds.push_back("HandBack");
  if (end) kinds.push_back("End");
  if (kinds.empty()) kinds.push_back("ConfirmReply");
  return kinds;
}

template <typename Message>
std::vector<std::string> ParseKinds(const Buffer& bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return KindsOf(message);
}

}  // namespace

const std::vector<std::string>& FeedKinds() {
  static const std::vector<std::string>& kinds = *new std::vector<std::string>{
      "Hello",   "Lease",  "Run",      "Unwanted", "Forget",      "Last",
      "Confirm", "Result", "HandBack", "End",      "ConfirmReply"};
  return kinds;
}

std::vector<std::string> KindsOf(const Buffer& message, bool request) {
  return request ? ParseKinds<muster::FeedRequest>(message)
                 : ParseKinds<muster::FeedReply>(message);
}

}  // namespace mu
