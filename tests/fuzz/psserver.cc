// Requests to a parameter server, one after the other, through its handlers: they parse, check and
// execute whatever comes.
#include <cstring>
#include <string>

#include "common/obs/log.h"
#include "common/rpc/frame.h"
#include "psserver/server.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/scratch_directory.h"
#include "tests/fuzz/small_model.h"
#include "tests/fuzz/structured.h"

namespace mu {
namespace {

constexpr int kMostCalls = 24;

Buffer FrameOf(const google::protobuf::MessageLite& header, const std::string& payload) {
  FrameWriter writer(header, payload.size());
  std::memcpy(writer.payload, payload.data(), payload.size());
  return std::move(writer.buffer).Finish();
}

class FuzzedServer {
 public:
  explicit FuzzedServer(const fuzzing::ScratchDirectory& files)
      : files_(files), server_({.telemetry = &telemetry_, .most_applied = 4096}) {
    server_.RegisterMethods(&methods_);
  }

  void Call(const std::string& method, Buffer request) {
    const auto call =
        fuzzing::CallHandler(methods_, "/muster.PsServer/" + method, std::move(request));
    if (call == nullptr || !call->status().ok() || method != "Save") return;
    pb::SaveReply reply;
    if (reply.ParseFromArray(call->reply().data(), static_cast<int>(call->reply().size())))
      *saved_.add_files() = reply.file();
  }
  void Call(const std::string& method, const google::protobuf::MessageLite& request) {
    Call(method, Buffer(request.SerializeAsString()));
  }

  void Make(const fuzz::PsCall& call) {
    switch (call.call_case()) {
      case fuzz::PsCall::kConfigure:
        if (fuzzing::IsSmall(call.configure().routing())) Call("Configure", call.configure());
        return;
      case fuzz::PsCall::kPull:
        return Call("Pull", FrameOf(call.pull().header(), call.pull().payload()));
      case fuzz::PsCall::kPush:
        return Call("Push", FrameOf(call.push().header(), call.push().payload()));
      case fuzz::PsCall::kAssign:
        return Call("Assign", call.assign());
      case fuzz::PsCall::kScan:
        return Call("Scan", call.scan());
      case fuzz::PsCall::kFence:
        return Call("Fence", call.fence());
      case fuzz::PsCall::kSave: {
        pb::SaveRequest request = call.save();
        request.set_directory(files_.path());
        return Call("Save", request);
      }
      case fuzz::PsCall::kRestore: {
        pb::RestoreRequest request = call.restore();
        request.set_directory(files_.path());
        if (call.restore_saved()) request.mutable_files()->MergeFrom(saved_.files());
        return Call("Restore", request);
      }
      case fuzz::PsCall::kLoadView: {
        pb::LoadViewRequest request = call.load_view();
        request.set_directory(files_.path());
        if (call.restore_saved()) request.mutable_files()->MergeFrom(saved_.files());
        return Call("LoadView", request);
      }
      case fuzz::PsCall::kDropView:
        return Call("DropView", call.drop_view());
      case fuzz::PsCall::kStats:
        return Call("GetStats", call.stats());
      case fuzz::PsCall::kRaw:
        // These take definitions and folders, which must stay small and below ours.
        if (call.raw().method() == "Pull" || call.raw().method() == "Push" ||
            call.raw().method() == "Assign") {
          Call(call.raw().method(), Buffer(call.raw().request()));
        }
        return;
      case fuzz::PsCall::CALL_NOT_SET:
        return;
    }
  }

 private:
  const fuzzing::ScratchDirectory& files_;
  Telemetry telemetry_;
  PsServer server_;
  MethodTable methods_;
  pb::RestoreRequest saved_;  // its files
};

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::PsCalls) {
  static const mu::fuzzing::ScratchDirectory files;
  mu::SetLogSeverity(mu::LogSeverity::ERROR);
  mu::FuzzedServer server(files);
  if (input.configured()) {
    muster::ConfigurePsRequest request;
    *request.mutable_context() = mu::fuzzing::SmallContext();
    *request.mutable_routing() = mu::fuzzing::SmallModel();
    server.Call("Configure", request);
  }
  int made = 0;
  for (const auto& call : input.calls()) {
    if (++made > mu::kMostCalls) break;
    server.Make(call);
  }
  files.Clear();
}
