#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/client/ps_client.h"
#include "common/client/ps_grouping.h"
#include "common/rpc/frame.h"
#include "proto/psserver.pb.h"

namespace mu {
namespace {

constexpr char kPull[] = "/muster.PsServer/Pull";
constexpr char kPush[] = "/muster.PsServer/Push";

constexpr size_t PaddedTo8(size_t bytes) { return (bytes + 7) / 8 * 8; }

inline void CopyRow(float* to, const float* from, size_t dim) {
  if (dim == 16) {
    std::memcpy(to, from, 16 * sizeof(float));
  } else {
    std::memcpy(to, from, dim * sizeof(float));
  }
}

absl::Status Unknown(absl::string_view what, uint32_t id) {
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " has id ", id, " in the routing that is known here"));
}

// One variable's partition on its way to or from a server.
struct Piece {
  uint32_t partition;
  size_t offset;  // in the whole variable
  size_t size;
  char* out;         // pulls
  const char* from;  // pushes
};

}  // namespace

// What is reused from step to step.
struct PsSession::Grouping {
  std::vector<GroupedIds> tables;
  std::vector<std::vector<Piece>> pieces;  // by server
  pb::PullRequest pull;
  pb::PushRequest push;

  void Reset(size_t servers, size_t table_count) {
    if (tables.size() < table_count) tables.resize(table_count);
    if (pieces.size() < servers) pieces.resize(servers);
    for (auto& of_server : pieces) of_server.clear();
  }
};

PsSession::PsSession(PsClient* client, PsSessionOptions options)
    : client_(client), options_(std::move(options)), grouping_(std::make_unique<Grouping>()) {}
PsSession::~PsSession() = default;

void PsSession::BeginStep(uint32_t step) {
  step_ = step;
  push_repeated_ = false;
}

void PsSession::BeginFunction(PsSessionOptions options) {
  options_ = std::move(options);
  group_.ResetCancel();
  BeginStep(0);
}

void PsSession::Cancel() { group_.Cancel(); }

absl::Status PsSession::NoRouting() const {
  return absl::FailedPreconditionError("the routing to the parameter servers is not known here yet");
}

absl::Status PsSession::Pull(absl::Span<const VariableRead> variables, absl::Span<const RowsRead> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const auto view = client_->view();
  if (view == nullptr) return NoRouting();
  const Routing& routing = *view->routing;
  const size_t servers = routing.servers().size();
  Grouping& g = *grouping_;
  g.Reset(servers, rows.size());
  for (const VariableRead& read : variables) {
    const VariableRoute* route = routing.variable(read.variable);
    if (route == nullptr) return Unknown("variable", read.variable);
    for (uint32_t p = 0; p < route->servers.size(); ++p) {
      if (route->sizes[p] == 0) continue;
      g.pieces[route->servers[p]].push_back(
          {p, read.variable, route->sizes[p], static_cast<char*>(read.out) + route->offsets[p], nullptr});
    }
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const TableRoute* route = routing.table(rows[t].table);
    if (route == nullptr) return Unknown("table", rows[t].table);
    MU_RETURN_IF_ERROR(g.tables[t].Group(*route, rows[t].ids));
  }

  std::vector<PsCall> calls;
  std::vector<size_t> positions;  // server of each call
  for (size_t s = 0; s < servers; ++s) {
    g.pull.Clear();
    size_t ids = 0;
    for (const Piece& piece : g.pieces[s]) {
      pb::VariableKey* key = g.pull.add_variables();
      key->set_variable(static_cast<uint32_t>(piece.offset));
      key->set_partition(piece.partition);
    }
    for (size_t t = 0; t < rows.size(); ++t) {
      g.tables[t].AddKeys(s, g.pull.mutable_tables());
      ids += g.tables[t].end(s) - g.tables[t].begin(s);
    }
    if (g.pieces[s].empty() && ids == 0) continue;
    *g.pull.mutable_context() = options_.context;
    g.pull.set_read_only(options_.read_only);
    FrameWriter frame(g.pull, ids * sizeof(int64_t));
    char* to = frame.payload;
    for (size_t t = 0; t < rows.size(); ++t) {
      const size_t bytes = (g.tables[t].end(s) - g.tables[t].begin(s)) * sizeof(int64_t);
      if (bytes > 0) std::memcpy(to, g.tables[t].ids().data() + g.tables[t].begin(s), bytes);
      to += bytes;
    }
    calls.push_back({routing.servers()[s].index(), view->channels[s], kPull, std::move(frame.buffer).Finish()});
    positions.push_back(s);
  }

  RetryPolicy policy = client_->policy();
  policy.seed = HashCombine(policy.seed, ++calls_);
  return group_.Run(std::move(calls), policy, [&](size_t call, const Buffer& reply) -> absl::Status {
    const size_t s = positions[call];
    pb::PullReply header;
    MU_ASSIGN_OR_RETURN(const absl::Span<const char> payload, ParseFrame(reply, &header));
    size_t expected = 0;
    for (const Piece& piece : g.pieces[s]) expected += PaddedTo8(piece.size);
    for (size_t t = 0; t < rows.size(); ++t) {
      expected += (g.tables[t].end(s) - g.tables[t].begin(s)) * g.tables[t].table().proto.dim() * sizeof(float);
    }
    if (payload.size() != expected) {
      return absl::InternalError(absl::StrCat("parameter server ", routing.servers()[s].index(), " answered a pull with ",
                                              payload.size(), " bytes instead of ", expected));
    }
    const char* from = payload.data();
    for (const Piece& piece : g.pieces[s]) {
      std::memcpy(piece.out, from, piece.size);
      from += PaddedTo8(piece.size);
    }
    for (size_t t = 0; t < rows.size(); ++t) {
      const GroupedIds& grouped = g.tables[t];
      const size_t dim = grouped.table().proto.dim();
      const uint32_t* origins = grouped.origins().data();
      float* out = rows[t].out;
      for (size_t i = grouped.begin(s); i < grouped.end(s); ++i) {
        CopyRow(out + origins[i] * dim, reinterpret_cast<const float*>(from), dim);
        from += dim * sizeof(float);
      }
    }
    return absl::OkStatus();
  });
}

absl::Status PsSession::Push(absl::Span<const VariableWrite> variables, absl::Span<const RowsWrite> rows) {
  push_repeated_ = false;
  if (options_.read_only) return absl::FailedPreconditionError("a read-only function pushes nothing");
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const auto view = client_->view();
  if (view == nullptr) return NoRouting();
  const Routing& routing = *view->routing;
  const size_t servers = routing.servers().size();
  Grouping& g = *grouping_;
  g.Reset(servers, rows.size());
  for (uint32_t v = 0; v < variables.size(); ++v) {
    const VariableRoute* route = routing.variable(variables[v].variable);
    if (route == nullptr) return Unknown("variable", variables[v].variable);
    for (uint32_t p = 0; p < route->servers.size(); ++p) {
      if (route->sizes[p] == 0) continue;
      g.pieces[route->servers[p]].push_back(
          {p, v, route->sizes[p], nullptr, static_cast<const char*>(variables[v].value) + route->offsets[p]});
    }
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const TableRoute* route = routing.table(rows[t].table);
    if (route == nullptr) return Unknown("table", rows[t].table);
    MU_RETURN_IF_ERROR(g.tables[t].Group(*route, rows[t].ids));
  }

  std::vector<PsCall> calls;
  for (size_t s = 0; s < servers; ++s) {
    g.push.Clear();
    size_t bytes = 0;
    for (const Piece& piece : g.pieces[s]) {
      const VariableWrite& write = variables[piece.offset];
      pb::VariableUpdate* update = g.push.add_variables();
      update->set_variable(write.variable);
      update->set_partition(piece.partition);
      update->set_kind(write.kind == VariableWrite::kGradient ? pb::VariableUpdate::GRADIENT
                                                              : pb::VariableUpdate::ASSIGN_ADD);
      bytes += PaddedTo8(piece.size);
    }
    size_t ids = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      const size_t count = g.tables[t].end(s) - g.tables[t].begin(s);
      g.tables[t].AddKeys(s, g.push.mutable_tables());
      ids += count;
      bytes += count * (sizeof(int64_t) + g.tables[t].table().proto.dim() * sizeof(float));
    }
    if (g.pieces[s].empty() && ids == 0) continue;
    *g.push.mutable_context() = options_.context;
    g.push.set_function(options_.function);
    g.push.set_step(step_);
    FrameWriter frame(g.push, bytes);
    char* to = frame.payload;
    for (size_t t = 0; t < rows.size(); ++t) {
      const size_t size = (g.tables[t].end(s) - g.tables[t].begin(s)) * sizeof(int64_t);
      if (size > 0) std::memcpy(to, g.tables[t].ids().data() + g.tables[t].begin(s), size);
      to += size;
    }
    for (const Piece& piece : g.pieces[s]) {
      std::memcpy(to, piece.from, piece.size);
      std::memset(to + piece.size, 0, PaddedTo8(piece.size) - piece.size);
      to += PaddedTo8(piece.size);
    }
    for (size_t t = 0; t < rows.size(); ++t) {
      const GroupedIds& grouped = g.tables[t];
      const size_t dim = grouped.table().proto.dim();
      const uint32_t* origins = grouped.origins().data();
      for (size_t i = grouped.begin(s); i < grouped.end(s); ++i) {
        CopyRow(reinterpret_cast<float*>(to), rows[t].gradients + origins[i] * dim, dim);
        to += dim * sizeof(float);
      }
    }
    calls.push_back({routing.servers()[s].index(), view->channels[s], kPush, std::move(frame.buffer).Finish()});
  }

  RetryPolicy policy = client_->policy();
  policy.seed = HashCombine(policy.seed, ++calls_);
  bool repeated = !calls.empty();
  MU_RETURN_IF_ERROR(group_.Run(std::move(calls), policy, [&](size_t, const Buffer& reply) -> absl::Status {
    pb::PushReply message;
    if (!message.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) {
      return absl::InternalError("a parameter server's answer to a push does not parse");
    }
    repeated &= message.repeated();
    return absl::OkStatus();
  }));
  push_repeated_ = repeated;
  return absl::OkStatus();
}

}  // namespace mu
