// A step's reads or writes, sorted by server: makes the frames of its calls and takes the replies
// apart. Buffers are kept from step to step. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/client/grouped_ids.h"
#include "common/client/product_calls.h"
#include "common/client/update_pieces.h"
#include "common/rpc/buffer.h"
#include "common/sharding/parameter_access.h"
#include "common/sharding/routing.h"
#include "proto/psserver.pb.h"

namespace mu {

class StepGrouping {
 public:
  // INVALID_ARGUMENT for variables and tables that the routing does not have, OUT_OF_RANGE for ids
  // that a table does not have. `routing` and what the spans point at stay until the step's calls
  // have ended.
  absl::Status GroupReads(const Routing& routing, absl::Span<const VariableRead> variables,
                          absl::Span<const RowsRead> rows);
  absl::Status GroupWrites(const Routing& routing, absl::Span<const VariableWrite> variables,
                           absl::Span<const RowsWrite> rows);

  // Whether the step needs anything of the server at this position of Routing::servers().
  bool Needs(size_t server) const;
  // What the server computes: gradients that are products.
  int64_t MultiplyAdds(size_t server) const { return MultiplyAddsOf(products_[server]); }

  // The reply to a pull, without its header.
  size_t ReplyBytes(size_t server) const { return PieceBytes(server) + RowBytes(server); }

  // The request to a server. `header` holds context and kind; its keys are filled in here.
  Buffer PullFrame(size_t server, muster::PullRequest* header) const;
  Buffer PushFrame(size_t server, muster::PushRequest* header) const;
  // Copies what a server sent to where the step wants it. INTERNAL if the reply is not of the size
  // that was asked for.
  absl::Status TakeReply(size_t server, const Buffer& reply, muster::PullReply* header) const;

 private:
  // A variable's partition on its way.
  struct Piece {
    uint32_t variable;
    uint32_t partition;
    size_t size;
    char* out;         // reads
    const char* from;  // writes
    muster::VariableUpdate::Kind kind;
    uint64_t first_row = 0;  // of the partition; with rows 0: all of it
    uint64_t rows = 0;
  };
  struct Rows {
    GroupedIds ids;
    float* out;              // reads
    const float* gradients;  // writes
  };

  void Begin(size_t servers);
  absl::Status AddVariable(const Routing& routing, const Piece& whole);
  absl::Status AddRead(const Routing& routing, const VariableRead& read);
  absl::Status AddWrite(const Routing& routing, const VariableWrite& write);
  absl::Status AddRows(const Routing& routing, uint32_t table, absl::Span<const int64_t> ids,
                       float* out, const float* gradients);
  size_t CountIds(size_t server) const;
  size_t PieceBytes(size_t server) const;
  size_t RowBytes(size_t server) const;
  // Returns the end of what was written.
  char* WriteIds(size_t server, char* to) const;

  // By server.
  std::vector<std::vector<Piece>> pieces_;
  std::vector<std::vector<ScatterPiece>> scatters_;
  std::vector<std::vector<ProductPiece>> products_;
  std::vector<Rows> rows_;  // the first tables_ are in use
  size_t tables_ = 0;
};

}  // namespace mu
