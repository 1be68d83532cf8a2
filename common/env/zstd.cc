#include <zstd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/compression_streams.h"

namespace mu {
namespace {

class ZstdStream final : public ByteStream {
 public:
  explicit ZstdStream(FileReader file)
      : file_(std::move(file)),
        state_(ZSTD_createDCtx(), ZSTD_freeDCtx),
        input_(new char[kInputBytes]) {}

  bool ready() const { return state_ != nullptr; }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    ZSTD_outBuffer out{buffer, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !flushing_) {
        MU_ASSIGN_OR_RETURN(const size_t n, file_.Read(input_.get(), kInputBytes));
        in_ = {input_.get(), n, 0};
        if (n == 0) {
          if (!in_frame_) return 0;
          return Corrupt("is truncated");
        }
      }
      const size_t result = ZSTD_decompressStream(state_.get(), &out, &in_);
      if (ZSTD_isError(result)) {
        return Corrupt(absl::StrCat("is corrupt (", ZSTD_getErrorName(result), ")"));
      }
      in_frame_ = result != 0;
      flushing_ = in_frame_ && out.pos == out.size;  // more may come without further input
    }
    return out.pos;
  }

 private:
  static constexpr size_t kInputBytes = 256 << 10;

  absl::Status Corrupt(absl::string_view how) const {
    return absl::DataLossError(absl::StrCat("the zstd file ", file_.path(), " ", how,
                                            "; fetch or write it again (zstd -t checks it)"));
  }

  FileReader file_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> state_;
  std::unique_ptr<char[]> input_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool in_frame_ = false;
  bool flushing_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> MakeZstdStream(FileReader file) {
  auto stream = std::make_unique<ZstdStream>(std::move(file));
  if (!stream->ready()) return absl::ResourceExhaustedError("no memory to unpack a zstd file");
  return stream;
}

absl::StatusOr<std::string> ZstdCompress(const std::string& data, int level) {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> state(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (state == nullptr) return absl::ResourceExhaustedError("no memory to pack a zstd file");
  ZSTD_CCtx_setParameter(state.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(state.get(), ZSTD_c_checksumFlag, 1);
  std::string packed;
  packed.resize(ZSTD_compressBound(data.size()));
  const size_t n =
      ZSTD_compress2(state.get(), packed.data(), packed.size(), data.data(), data.size());
  if (ZSTD_isError(n)) return absl::InternalError(absl::StrCat("zstd: ", ZSTD_getErrorName(n)));
  packed.resize(n);
  return packed;
}

}  // namespace mu
