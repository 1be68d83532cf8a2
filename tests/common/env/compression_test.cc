#include "common/env/compression.h"

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/hash.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string RandomText(uint64_t seed, size_t size) {
  SplitMix random(seed);
  std::string text(size, 0);
  for (char& c : text) c = static_cast<char>('a' + random.Below(8));
  return text;
}

absl::StatusOr<std::string> ReadAll(const std::string& path, size_t step) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream = OpenUnpacked(path);
  if (!stream.ok()) return stream.status();
  std::string all, buffer(step, 0);
  while (true) {
    const absl::StatusOr<size_t> n = (*stream)->Read(buffer.data(), buffer.size());
    if (!n.ok()) return n.status();
    if (*n == 0) break;
    all.append(buffer, 0, *n);
  }
  return all;
}

class NamedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { MU_ASSERT_OK_AND_ASSIGN(root_, MakeTempDirectory("compression_test")); }
  void TearDown() override { MU_ASSERT_OK(RemoveTree(root_)); }
  std::string Write(const std::string& name, const std::string& contents) {
    const std::string path = JoinPath(root_, name);
    RemoveFile(path).IgnoreError();
    EXPECT_THAT(AppendToFile(path, contents),
                testing::IsOk());  // unlike an atomic write, without waiting for the disk
    return path;
  }
  std::string root_;
};

class CompressionTest : public NamedFileTest, public ::testing::WithParamInterface<Compression> {
 protected:
  std::string Packed(const std::string& data) { return Compress(GetParam(), data).value(); }
};

// Formats that know their end and their checksum.
class PackedTest : public CompressionTest {};

INSTANTIATE_TEST_SUITE_P(All, PackedTest,
                         ::testing::Values(Compression::kGzip, Compression::kZstd));
INSTANTIATE_TEST_SUITE_P(All, CompressionTest,
                         ::testing::Values(Compression::kNone, Compression::kGzip,
                                           Compression::kZstd));

TEST_P(CompressionTest, UnpacksWhateverTheName) {
  const std::string data = RandomText(1, 700'001);
  const std::string path = Write("data.tsv", Packed(data));
  MU_ASSERT_OK_AND_ASSIGN(const Compression compression, DetectCompression(path));
  EXPECT_EQ(compression, GetParam());
  for (size_t step : {size_t{1} << 20, size_t{999}}) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(path, step));
    EXPECT_TRUE(read == data);
  }
}

TEST_P(CompressionTest, ReadsMembersInARow) {
  const std::string a = RandomText(2, 300'000), b = RandomText(3, 5), c = RandomText(4, 100'000);
  const std::string path = Write("data", Packed(a) + Packed(b) + Packed("") + Packed(c));
  MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(path, 4096));
  EXPECT_TRUE(read == a + b + c);
}

TEST_P(CompressionTest, ReadsWhatUnpacksToNothing) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(Write("data", Packed("")), 100));
  EXPECT_EQ(read, "");
}

TEST_P(PackedTest, EveryTruncationIsDataLoss) {
  const std::string packed = Packed(RandomText(5, 2000));
  // Below four bytes the format cannot be told; those are told by the name, see below.
  for (size_t size = 4; size < packed.size(); size += 7) {
    const std::string path = Write("data", packed.substr(0, size));
    EXPECT_THAT(ReadAll(path, 512), StatusIs(absl::StatusCode::kDataLoss,
                                             AllOf(HasSubstr(path), HasSubstr("truncated"))))
        << size;
  }
}

TEST_P(PackedTest, ATruncatedSecondMemberIsDataLoss) {
  const std::string packed = Packed(RandomText(6, 2000));
  const std::string path = Write("data", packed + packed.substr(0, packed.size() - 1));
  EXPECT_THAT(ReadAll(path, 1 << 20), HasCode(absl::StatusCode::kDataLoss));
}

TEST_P(PackedTest, FlippedBitsAreDataLoss) {
  const std::string data = RandomText(7, 3000);
  const std::string packed = Packed(data);
  int lost = 0, same = 0;
  for (size_t i = 10; i < packed.size(); i += 11) {  // behind the header's free bytes
    std::string broken = packed;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    const absl::StatusOr<std::string> read = ReadAll(Write("data", broken), 4096);
    if (read.ok()) {
      same += *read == data;
      EXPECT_TRUE(*read == data) << "a corrupt file was read as other data, byte " << i;
    } else {
      EXPECT_THAT(read, HasCode(absl::StatusCode::kDataLoss));
      ++lost;
    }
  }
  EXPECT_GT(lost, 50);
  EXPECT_EQ(same, 0);
}

TEST_F(NamedFileTest, WhatIsWrittenByItsNameIsReadByIt) {
  EXPECT_EQ(CompressionOfName("a.gz/data.txt"), Compression::kNone);
  for (const char* name : {"data.gz", "data.zst", "data.txt", "zst"}) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string bytes, Compress(CompressionOfName(name), "text"));
    const std::string path = Write(name, bytes);
    MU_ASSERT_OK_AND_ASSIGN(const Compression found, DetectCompression(path));
    EXPECT_EQ(found, CompressionOfName(name)) << name;
  }
}

TEST_F(NamedFileTest, TheNameMustNotLie) {
  for (const char* name : {"data.gz", "data.zst"}) {
    for (const char* contents : {"", "x", "plain text"}) {
      const std::string path = Write(name, contents);
      EXPECT_THAT(OpenUnpacked(path).status(),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
    }
  }
}

// Of lengths that end in gzip's magic, and in its method too. Behind them is their checksum.
TEST_F(NamedFileTest, TfrecordsThatBeginAsGzipDoes) {
  const std::string short_head("\x1F\x8B\x00\x00\x00\x00\x00\x00\xCC\x51\xC2\x1A", 12);
  const std::string long_head("\x1F\x8B\x08\x00\x00\x00\x00\x00\xD0\x91\x84\xEA", 12);
  for (const auto& [head, length] :
       {std::pair(short_head, 0x8B1F), std::pair(long_head, 0x88B1F)}) {
    const std::string data = head + RandomText(8, static_cast<size_t>(length) + 4);
    const std::string path = Write("b.tfrecord", data);
    MU_ASSERT_OK_AND_ASSIGN(const Compression compression, DetectCompression(path));
    EXPECT_EQ(compression, Compression::kNone) << length;
    MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(path, 1 << 20));
    EXPECT_TRUE(read == data) << length;
    // A name that lies is not believed.
    EXPECT_THAT(DetectCompression(Write("b.tfrecord.gz", data)),
                HasCode(absl::StatusCode::kDataLoss));
  }
  std::string other = long_head + RandomText(9, 0x88B1F + 4);
  other[8] ^= 1;
  MU_ASSERT_OK_AND_ASSIGN(const Compression compression, DetectCompression(Write("other", other)));
  EXPECT_EQ(compression, Compression::kGzip) << "of no TFRecord file";
}

TEST_F(NamedFileTest, GzipHasOneMethodAndReservedFlags) {
  const auto detected = [&](absl::string_view bytes) {
    return DetectCompression(Write("data", std::string(bytes))).value();
  };
  for (const absl::string_view head :
       {"\x1F\x8B\x07\x01", "\x1F\x8B\x09", "\x1F\x8B\x08\x20", "\x1F\x8B\x08\x40",
        "\x1F\x8B\x08\x9F", "\x1F", "\x8B\x1F\x08\x01"})
    EXPECT_EQ(detected(head), Compression::kNone) << absl::CHexEscape(head);
  // All flags that are defined, and files that end within their heads.
  for (const absl::string_view head : {"\x1F\x8B\x08\x1F", "\x1F\x8B\x08", "\x1F\x8B"})
    EXPECT_EQ(detected(head), Compression::kGzip) << absl::CHexEscape(head);
}

TEST_F(NamedFileTest, ZerosAfterGzipArePadding) {
  const std::string packed = Compress(Compression::kGzip, "data").value();
  MU_ASSERT_OK_AND_ASSIGN(const std::string read,
                          ReadAll(Write("data.gz", packed + std::string(512, '\0')), 100));
  EXPECT_EQ(read, "data");
  EXPECT_THAT(ReadAll(Write("data.gz", packed + std::string(512, '\0') + "x"), 100),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadAll(Write("data.gz", packed + "garbage"), 100),
              HasCode(absl::StatusCode::kDataLoss));
}

// A zstd frame that holds no data; `kind` is from 0 to 15.
std::string Skippable(int kind, const std::string& content) {
  std::string frame = {static_cast<char>(0x50 + kind), '\x2A', '\x4D', '\x18'};
  for (int shift = 0; shift < 32; shift += 8)
    frame.push_back(static_cast<char>((content.size() >> shift) & 0xFF));
  return frame + content;
}

TEST_F(NamedFileTest, SkippableFramesOfZstdHoldNothing) {
  const auto packed = [](const std::string& data) {
    return Compress(Compression::kZstd, data).value();
  };
  const std::string a = RandomText(10, 300'000), b = RandomText(11, 7), c = RandomText(12, 4000);
  // As pzstd writes its frames, and in every other place; one is larger than what is read at once.
  const std::string all = Skippable(0, "size") + packed(a) + Skippable(0, "size") + packed(b) +
                          Skippable(15, "") + Skippable(7, RandomText(13, 700'001)) + packed("") +
                          packed(c) + Skippable(14, "the end");
  for (const char* name : {"data", "data.csv", "data.zst"}) {
    const std::string path = Write(name, all);
    MU_ASSERT_OK_AND_ASSIGN(const Compression compression, DetectCompression(path));
    EXPECT_EQ(compression, Compression::kZstd) << name;
    for (const size_t step : {size_t{1} << 20, size_t{999}, size_t{1}}) {
      MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(path, step));
      EXPECT_TRUE(read == a + b + c) << name << " by " << step;
    }
  }
}

TEST_F(NamedFileTest, SkippableFramesAloneAreAnEmptyFile) {
  for (int kind = 0; kind < 16; ++kind) {
    for (const std::string& frame :
         {Skippable(kind, ""), Skippable(kind, "x"), Skippable(kind, "x") + Skippable(0, "yz")}) {
      MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadAll(Write("data", frame), 100));
      EXPECT_EQ(read, "") << kind;
    }
  }
}

TEST_F(NamedFileTest, TruncatedSkippableFramesAreDataLoss) {
  const std::string frame = Skippable(3, RandomText(14, 40));
  const std::string packed = Compress(Compression::kZstd, "data").value();
  for (size_t size = 1; size < frame.size(); ++size) {
    const std::string cut = frame.substr(0, size);
    // Alone, below four bytes the format cannot be told.
    for (const std::string& contents : {size < 4 ? frame + cut : cut, packed + cut}) {
      const std::string path = Write("data", contents);
      EXPECT_THAT(ReadAll(path, 512), StatusIs(absl::StatusCode::kDataLoss,
                                               AllOf(HasSubstr(path), HasSubstr("truncated"))))
          << size;
    }
  }
  const std::string large = Skippable(0, std::string(600'000, 'x'));
  EXPECT_THAT(ReadAll(Write("data", large.substr(0, large.size() - 1)), 512),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("truncated")));
  EXPECT_THAT(ReadAll(Write("data", frame + "garbage"), 512), HasCode(absl::StatusCode::kDataLoss));
}

TEST_F(NamedFileTest, TextThatBeginsAlmostAsASkippableFrame) {
  for (const char* text : {"P*M", "P*M,1\n", "`*M\x18", "O*M\x18"}) {
    MU_ASSERT_OK_AND_ASSIGN(const Compression compression, DetectCompression(Write("data", text)));
    EXPECT_EQ(compression, Compression::kNone) << text;
  }
}

TEST_F(NamedFileTest, MissingFilesAreNotFound) {
  EXPECT_THAT(OpenUnpacked(JoinPath(root_, "none.gz")).status(),
              HasCode(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace mu
