// What servers are asked about views of checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "proto/psserver.pb.h"

namespace mu {

// A request of every server: the files are those of all of them, in `directory`.
inline muster::LoadViewRequest ToLoadView(const muster::RequestContext& context, uint64_t view,
                                          const std::string& directory,
                                          absl::Span<const muster::CheckpointFileProto> files) {
  muster::LoadViewRequest request;
  *request.mutable_context() = context;
  request.set_view(view);
  request.set_directory(directory);
  for (const muster::CheckpointFileProto& file : files) *request.add_files() = file;
  return request;
}

inline muster::DropViewRequest ToDropView(const muster::RequestContext& context, uint64_t view) {
  muster::DropViewRequest request;
  *request.mutable_context() = context;
  request.set_view(view);
  return request;
}

}  // namespace mu
