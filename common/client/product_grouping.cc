#include "common/client/product_grouping.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "common/tensor/dtype.h"

namespace mu {

absl::Status ProductGrouping::Group(const Routing& routing, absl::Span<const ProductRead> products,
                                    const ProductLimits& limits) {
  if (pieces_.size() < routing.servers().size()) pieces_.resize(routing.servers().size());
  for (auto& of_server : pieces_) of_server.clear();
  sums_.clear();
  for (const ProductRead& product : products) {
    const VariableRoute* route = routing.variable(product.variable);
    if (route == nullptr || route->proto.dtype() != kFloat32 ||
        route->proto.shape().dims_size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("no float32 matrix has id ", product.variable,
                                                     " in the routing that is known here"));
    }
    AddProducts(*route, product, &pieces_);
    if (!product.back) continue;
    Sum& sum = sums_.emplace_back();
    sum.part_size = static_cast<size_t>(product.batch * route->layout.elements_per_row);
    sum.count = route->servers.size();
    sum.parts.resize(sum.count * sum.part_size);
    sum.out = product.out;
    // Vectors move, what they hold does not.
    for (auto& of_server : pieces_) {
      for (ProductPiece& piece : of_server) {
        if (piece.back && piece.variable == product.variable && piece.out == product.out)
          piece.out = sum.parts.data() + piece.partition * sum.part_size;
      }
    }
  }
  calls_.clear();
  for (const auto& of_server : pieces_) calls_.push_back(CutIntoCalls(of_server, limits));
  return absl::OkStatus();
}

size_t ProductGrouping::calls() const {
  size_t most = 0;
  for (const auto& of_server : calls_) most = std::max(most, of_server.size());
  return most;
}

int64_t ProductGrouping::MultiplyAdds(size_t call) const {
  int64_t most = 0;
  for (size_t server = 0; server < calls_.size(); ++server) {
    if (Needs(server, call)) most = std::max(most, MultiplyAddsOf(calls_[server][call]));
  }
  return most;
}

size_t ProductGrouping::ReplyBytes(size_t call) const {
  size_t most = 0;
  for (size_t server = 0; server < calls_.size(); ++server) {
    if (!Needs(server, call)) continue;
    size_t bytes = 0;
    for (const ProductPiece& piece : calls_[server][call]) bytes += OutputBytes(piece);
    most = std::max(most, bytes);
  }
  return most;
}

Buffer ProductGrouping::PullFrame(size_t server, size_t call, pb::PullRequest* header) const {
  const std::vector<ProductPiece>& pieces = calls_[server][call];
  header->clear_products();
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    pb::ProductKey* key = header->add_products();
    key->set_variable(pieces[i].variable);
    key->set_partition(pieces[i].partition);
    key->set_rows(static_cast<uint32_t>(pieces[i].batch));
    key->set_back(pieces[i].back);
    if (!SharesInput(pieces, i)) bytes += PaddedTo8(InputBytes(pieces[i]));
  }
  FrameWriter frame(*header, bytes);
  char* to = frame.payload;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (SharesInput(pieces, i)) continue;
    const size_t size = InputBytes(pieces[i]);
    if (pieces[i].back) {
      pieces[i].TakeColumns(pieces[i].x, to);
    } else if (size > 0) {
      std::memcpy(to, pieces[i].x, size);
    }
    std::memset(to + size, 0, PaddedTo8(size) - size);
    to += PaddedTo8(size);
  }
  return std::move(frame.buffer).Finish();
}

absl::Status ProductGrouping::TakeReply(size_t server, size_t call, const Buffer& reply,
                                        pb::PullReply* header) {
  MU_ASSIGN_OR_RETURN(const absl::Span<const char> payload, ParseFrame(reply, header));
  size_t bytes = 0;
  for (const ProductPiece& piece : calls_[server][call]) bytes += PaddedTo8(OutputBytes(piece));
  if (payload.size() != bytes) {
    return absl::InternalError(absl::StrCat("a parameter server answered with ", payload.size(),
                                            " bytes of products instead of ", bytes));
  }
  const char* from = payload.data();
  for (const ProductPiece& piece : calls_[server][call]) {
    const size_t size = OutputBytes(piece);
    if (!piece.back) {
      piece.PutColumns(from, piece.out);
    } else if (size > 0) {
      std::memcpy(piece.out, from, size);
    }
    from += PaddedTo8(size);
  }
  return absl::OkStatus();
}

void ProductGrouping::Finish() {
  for (const Sum& sum : sums_) {
    std::fill_n(sum.out, sum.part_size, 0.0f);
    for (size_t p = 0; p < sum.count; ++p) {
      const float* const part = sum.parts.data() + p * sum.part_size;
      for (size_t i = 0; i < sum.part_size; ++i) sum.out[i] += part[i];
    }
  }
}

}  // namespace mu
