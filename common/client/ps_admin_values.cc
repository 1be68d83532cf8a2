// Values that the coordinator reads from the servers.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/client/known_view.h"
#include "common/client/ps_admin.h"
#include "common/client/value_pieces.h"
#include "common/rpc/frame.h"

namespace mu {
namespace {

absl::Status TakeScan(const Buffer& reply, size_t dim, PsAdmin::TableRows* rows,
                      PsAdmin::TablePosition* next) {
  pb::ScanReply header;
  MU_ASSIGN_OR_RETURN(const absl::Span<const char> payload, ParseFrame(reply, &header));
  const size_t ids = header.rows() * sizeof(int64_t), values = header.rows() * dim * sizeof(float);
  if (payload.size() != ids + values)
    return absl::InternalError("a parameter server answered a scan with another size than it says");
  rows->ids.resize(header.rows());
  rows->values.resize(header.rows() * dim);
  if (header.rows() > 0) {
    std::memcpy(rows->ids.data(), payload.data(), ids);
    std::memcpy(rows->values.data(), payload.data() + ids, values);
  }
  next->row = header.position();
  next->end = header.end();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> PsAdmin::ReadVariable(const pb::RequestContext& context,
                                             const std::string& name, uint64_t piece_bytes) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const VariableRoute* route, KnownVariable(*view->routing, name));
  Tensor value(route->proto.dtype(), Shape(route->proto.shape()));
  PsSession session(client_, {.context = context, .function = 0, .read_only = true});
  const VariableRead read{route->proto.id(), value.raw(), 0, route->layout.rows};
  MU_RETURN_IF_ERROR(
      PullInPieces(&session, read, static_cast<size_t>(route->layout.bytes_per_row), piece_bytes));
  return value;
}

absl::StatusOr<PsAdmin::TableRows> PsAdmin::Scan(const pb::RequestContext& context,
                                                 const std::string& table, uint32_t most,
                                                 TablePosition* position) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  MU_ASSIGN_OR_RETURN(const TableRoute* route, KnownTable(*view->routing, table));
  TableRows rows;
  if (position->end) return rows;
  if (position->partition >= route->servers.size())
    return absl::InvalidArgumentError("the table has no such partition");
  pb::ScanRequest request;
  *request.mutable_context() = context;
  request.set_table(route->proto.id());
  request.set_partition(position->partition);
  request.set_position(position->row);
  request.set_most_rows(most);
  const uint32_t s = route->servers[position->partition];
  std::vector<PsCall> calls;
  calls.push_back({view->routing->servers()[s].index(), view->channels[s], "/muster.PsServer/Scan",
                   Buffer(request.SerializeAsString())});
  TablePosition next = *position;
  PsCallGroup group;
  MU_RETURN_IF_ERROR(
      group.Run(std::move(calls), client_->policy(), [&](size_t, const Buffer& reply) {
        return TakeScan(reply, route->proto.dim(), &rows, &next);
      }));
  if (next.end) next = {next.partition + 1, 0, next.partition + 1 == route->servers.size()};
  *position = next;
  return rows;
}

}  // namespace mu
