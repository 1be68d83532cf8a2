#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/compression_streams.h"

namespace mu {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr int kGzipFormat = 15 + 16;  // the largest window, with gzip's header and checksum

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(FileReader file) : file_(std::move(file)), input_(new char[kInputBytes]) {}
  ~GzipStream() override {
    if (ready_) inflateEnd(&state_);
  }

  absl::Status Init() {
    if (inflateInit2(&state_, kGzipFormat) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to unpack a gzip file");
    }
    ready_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    state_.next_out = reinterpret_cast<Bytef*>(buffer);
    const size_t limit = std::min<size_t>(size, std::numeric_limits<uInt>::max());
    state_.avail_out = static_cast<uInt>(limit);
    while (state_.avail_out == limit) {
      if (state_.avail_in == 0) MU_RETURN_IF_ERROR(Fill());
      if (state_.avail_in == 0) {
        if (between_members_) return 0;
        return Corrupt("is truncated");
      }
      if (between_members_ && !first_member_) {
        // gzip pads with zeros on some media; anything else here must be another member.
        while (state_.avail_in > 0 && *state_.next_in == 0) {
          padding_ = true;
          ++state_.next_in;
          --state_.avail_in;
        }
        if (state_.avail_in == 0) continue;
        if (padding_) return Corrupt("has bytes after its end");
      }
      between_members_ = false;
      const int result = inflate(&state_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        between_members_ = true;
        first_member_ = false;
        inflateReset(&state_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Corrupt(
            absl::StrCat("is corrupt (", state_.msg != nullptr ? state_.msg : "zlib", ")"));
      }
    }
    return limit - state_.avail_out;
  }

 private:
  absl::Status Fill() {
    MU_ASSIGN_OR_RETURN(const size_t n, file_.Read(input_.get(), kInputBytes));
    state_.next_in = reinterpret_cast<Bytef*>(input_.get());
    state_.avail_in = static_cast<uInt>(n);
    return absl::OkStatus();
  }
  absl::Status Corrupt(absl::string_view how) const {
    return absl::DataLossError(absl::StrCat("the gzip file ", file_.path(), " ", how,
                                            "; fetch or write it again (gzip -t checks it)"));
  }

  FileReader file_;
  std::unique_ptr<char[]> input_;
  z_stream state_ = {};
  bool ready_ = false;
  bool between_members_ = false;  // nothing of the next member has been seen
  bool first_member_ = true;
  bool padding_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> MakeGzipStream(FileReader file) {
  auto stream = std::make_unique<GzipStream>(std::move(file));
  MU_RETURN_IF_ERROR(stream->Init());
  return stream;
}

absl::StatusOr<std::string> GzipCompress(const std::string& data, int level) {
  if (data.size() > std::numeric_limits<uInt>::max()) {
    return absl::InvalidArgumentError("more than 4 GiB in one gzip member");
  }
  z_stream state = {};
  if (deflateInit2(&state, level, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to pack a gzip file");
  }
  std::string packed;
  packed.resize(deflateBound(&state, data.size()));
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  state.avail_in = static_cast<uInt>(data.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&state, Z_FINISH);
  packed.resize(state.total_out);
  deflateEnd(&state);
  if (result != Z_STREAM_END) return absl::InternalError("zlib did not finish a gzip member");
  return packed;
}

}  // namespace mu
