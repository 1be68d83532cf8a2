// Products of a batch with variables, sorted by server and cut into calls: makes the frames of
// their pulls and puts together what the servers answer. Buffers are kept from step to step. Not
// thread safe.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/client/product_calls.h"
#include "common/client/update_pieces.h"
#include "common/rpc/buffer.h"
#include "common/sharding/parameter_access.h"
#include "common/sharding/routing.h"
#include "proto/psserver.pb.h"

namespace mu {

class ProductGrouping {
 public:
  // INVALID_ARGUMENT for variables that the routing does not have, or that are no float32 matrices.
  // `routing` and what `products` point at stay until Finish.
  absl::Status Group(const Routing& routing, absl::Span<const ProductRead> products,
                     const ProductLimits& limits);
  // Of the server that has most; they are made one after the other.
  size_t calls() const;
  // Of the server that has most to do in this call.
  int64_t MultiplyAdds(size_t call) const;
  // Of the server whose reply to this call is the largest.
  size_t ReplyBytes(size_t call) const;
  // Whether this call goes to the server at this position of Routing::servers().
  bool Needs(size_t server, size_t call) const { return call < calls_[server].size(); }
  // The request to a server. `header` holds all but the products.
  Buffer PullFrame(size_t server, size_t call, muster::PullRequest* header) const;
  // INTERNAL if the reply is not of the size that was asked for. Different servers' may be taken at
  // the same time.
  absl::Status TakeReply(size_t server, size_t call, const Buffer& reply,
                         muster::PullReply* header);
  // All replies were taken: sets what is a sum over partitions, in their order.
  void Finish();

 private:
  // Of a product that goes back: [partitions, batch, columns].
  struct Sum {
    std::vector<float> parts;
    size_t part_size = 0;
    size_t count = 0;  // of partitions
    float* out = nullptr;
  };
  std::vector<std::vector<ProductPiece>> pieces_;              // by server
  std::vector<std::vector<std::vector<ProductPiece>>> calls_;  // by server: calls of pieces
  std::vector<Sum> sums_;                                      // of the products that go back
};

}  // namespace mu
