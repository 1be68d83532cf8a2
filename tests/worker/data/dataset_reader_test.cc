#include "worker/data/dataset_reader.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "common/base/error_kind.h"
#include "tests/worker/data/data_test_util.h"
#include "tests/worker/data/naive_csv.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetReaderTest : public DataTest {
 protected:
  // One ID column `id` from files of given sizes, whose ids count through all files.
  pb::DatasetProto Counting(const std::vector<int>& sizes, absl::string_view ending = ".csv") {
    pb::DatasetProto dataset;
    dataset.set_id(3);
    dataset.set_name("counting");
    dataset.set_batch_size(10);
    dataset.set_block_records(7);
    AddColumn(&dataset, "id", pb::CsvColumnProto::ID, 0);
    int next = 0;
    for (size_t file = 0; file < sizes.size(); ++file) {
      std::string text;
      for (int i = 0; i < sizes[file]; ++i) absl::StrAppend(&text, next++, "\n");
      dataset.add_files(Write(absl::StrCat("part", file, ending), text));
    }
    return dataset;
  }
};

std::vector<int64_t> AllIds(const LeaseData& data, const std::string& column = "id") {
  std::vector<int64_t> ids;
  for (uint32_t b = 0; b < data.batches(); ++b) {
    const std::vector<int64_t> part = Values<int64_t>(data.MakeBatch(b), column);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

std::string RandomField(SplitMix* random) {
  constexpr absl::string_view kPieces[] = {"a", "b", " ", ",", "\"", "\n", "\r\n", "7", "é"};
  std::string field;
  for (uint64_t n = random->Below(5); n > 0; --n) field += std::string(kPieces[random->Below(9)]);
  return field;
}

std::string Quoted(const std::string& field) {
  std::string text = "\"";
  for (char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// A csv of three columns: a number that counts the records, and two texts.
std::string RandomCsv(uint64_t seed, int records) {
  SplitMix random(seed);
  std::string text = seed % 3 == 0 ? "\xEF\xBB\xBF" : "";
  const std::string line_end = seed % 2 == 0 ? "\r\n" : "\n";
  for (int i = 0; i < records; ++i) {
    for (uint64_t n = random.Below(8); n == 0; n = random.Below(3)) text += line_end;
    absl::StrAppend(&text, random.Below(5) == 0 ? Quoted(absl::StrCat(i)) : absl::StrCat(i));
    for (int column = 0; column < 2; ++column) {
      const std::string field = RandomField(&random);
      const bool must_quote = field.find_first_of(",\"\r\n") != std::string::npos;
      absl::StrAppend(&text, ",", must_quote || random.Below(4) == 0 ? Quoted(field) : field);
    }
    if (i + 1 < records || random.Below(2) == 0) text += line_end;
  }
  return text;
}

TEST_F(DatasetReaderTest, ReadsRandomCsvAsTheNaiveReaderDoes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed + 1000);
    const std::string text = RandomCsv(seed, static_cast<int>(random.Below(40)));
    const std::vector<NaiveRecord> expected = NaiveCsv(text.substr(seed % 3 == 0 ? 3 : 0));
    pb::DatasetProto dataset;
    dataset.set_batch_size(1000);
    dataset.set_block_records(1 + static_cast<uint32_t>(random.Below(6)));
    AddColumn(&dataset, "n", pb::CsvColumnProto::ID, 0);
    AddColumn(&dataset, "a", pb::CsvColumnProto::HASH, 1)->set_buckets(1'000'000'007);
    AddColumn(&dataset, "b", pb::CsvColumnProto::HASH, 2)->set_buckets(1'000'000'007);
    dataset.add_files(Write(absl::StrCat("f", seed,
                                         seed % 4 == 0   ? ".gz"
                                         : seed % 4 == 1 ? ".zst"
                                                         : ""),
                            text));
    const auto reader = Reader(dataset);
    MU_ASSERT_OK_AND_ASSIGN(const auto layout, reader->Layout(0));
    const uint64_t records = layout.records();
    ASSERT_EQ(records, expected.size());
    const BucketHash a(HashString("a"), 1'000'000'007), b(HashString("b"), 1'000'000'007);
    const auto hash = [](const BucketHash& h, const std::string& s) {
      return s.empty() ? h.OfMissing() : h.OfText(s);
    };
    for (int trial = 0; trial < 10 && records > 0; ++trial) {
      const uint64_t first = random.Below(records);
      const uint32_t count = 1 + static_cast<uint32_t>(random.Below(records - first));
      MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({Block(0, first, count)})));
      ASSERT_EQ(data->records(), count);
      const Batch batch = data->MakeBatch(0);
      const auto n = Values<int64_t>(batch, "n"), as = Values<int64_t>(batch, "a"),
                 bs = Values<int64_t>(batch, "b");
      for (uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(n[i], static_cast<int64_t>(first + i));
        ASSERT_EQ(as[i], hash(a, expected[first + i].fields[1]));
        ASSERT_EQ(bs[i], hash(b, expected[first + i].fields[2]));
      }
    }
  }
}

TEST_F(DatasetReaderTest, LinesAreRightInTheMiddleOfAFile) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::string text = RandomCsv(seed, 30);
    const std::vector<NaiveRecord> expected = NaiveCsv(text.substr(seed % 3 == 0 ? 3 : 0));
    pb::DatasetProto dataset;
    dataset.set_batch_size(10);
    dataset.set_block_records(4);
    AddColumn(&dataset, "wide", pb::CsvColumnProto::NUMBER, 3);  // which no record has
    dataset.add_files(Write("f.csv", text));
    const auto reader = Reader(dataset);
    for (uint64_t first = 0; first < expected.size(); ++first) {
      EXPECT_THAT(
          reader->Read(LeaseOf({Block(0, first, 1)})).status(),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   HasSubstr(absl::StrCat("f.csv:", expected[first].line, ": column wide"))));
    }
  }
}

TEST_F(DatasetReaderTest, EveryRecordOnceOverAllLeases) {
  for (const char* ending : {".csv", ".csv.gz", ".csv.zst"}) {
    for (uint32_t modulo : {0u, 3u, 10u}) {
      pb::DatasetProto dataset = Counting({50, 0, 1, 33, 7}, ending);
      if (modulo > 0) {
        dataset.mutable_records()->set_modulo(modulo);
        dataset.mutable_records()->add_keep(modulo - 1);
        dataset.mutable_records()->add_keep(0);
      }
      const auto reader = Reader(dataset);
      std::vector<pb::BlockProto> blocks;
      std::vector<int64_t> expected;
      int64_t id = 0;
      for (int file = 0; file < dataset.files_size(); ++file) {
        MU_ASSERT_OK_AND_ASSIGN(const auto layout, reader->Layout(file));
        const uint64_t records = layout.records();
        for (uint64_t i = 0; i < records; ++i, ++id) {
          if (modulo == 0 || i % modulo == modulo - 1 || i % modulo == 0) expected.push_back(id);
        }
        for (uint64_t first = 0; first < records; first += 7) {
          blocks.push_back(
              Block(file, first, static_cast<uint32_t>(std::min<uint64_t>(7, records - first))));
        }
      }
      // Scattered blocks, three to a lease.
      SplitMix random(modulo + 5);
      for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.Below(i)]);
      std::vector<int64_t> seen;
      for (size_t i = 0; i < blocks.size(); i += 3) {
        const std::vector<pb::BlockProto> part(blocks.begin() + i,
                                               blocks.begin() + std::min(i + 3, blocks.size()));
        MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf(part, i + 1)));
        const std::vector<int64_t> ids = AllIds(*data);
        EXPECT_EQ(ids.size(), data->records());
        seen.insert(seen.end(), ids.begin(), ids.end());
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, expected) << ending << " modulo " << modulo;
    }
  }
}

TEST_F(DatasetReaderTest, PermutesBySeedAlone) {
  const auto reader = Reader(Counting({25}));
  const auto read = [&](uint64_t seed) {
    return AllIds(**reader->Read(LeaseOf({Block(0, 0, 25)}, seed)));
  };
  std::vector<int64_t> sorted(25);
  for (int i = 0; i < 25; ++i) sorted[i] = i;
  EXPECT_EQ(read(0), sorted);
  EXPECT_EQ(read(9), read(9));
  EXPECT_NE(read(9), read(10));
  EXPECT_NE(read(9), sorted);
  std::vector<int64_t> permuted = read(9);
  std::sort(permuted.begin(), permuted.end());
  EXPECT_EQ(permuted, sorted);
}

TEST_F(DatasetReaderTest, PermutationsAreUniform) {
  const auto reader = Reader(Counting({3}));
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t seed = 1; seed <= 6000; ++seed)
    ++counts[AllIds(**reader->Read(LeaseOf({Block(0, 0, 3)}, Mix64(seed))))];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts)
    EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST_F(DatasetReaderTest, CutsBatches) {
  const auto reader = Reader(Counting({25}));
  MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({Block(0, 0, 25)})));
  EXPECT_EQ(data->batches(), 3u);
  EXPECT_EQ(data->MakeBatch(0).records, 10u);
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(2), "id"), ElementsAre(20, 21, 22, 23, 24));
  for (uint32_t index : {3u, 0xFFFFFFFFu}) {
    const Batch none = data->MakeBatch(index);
    EXPECT_EQ(none.records, 0u);
    EXPECT_EQ(none.Find("id")->shape(), Shape({0}));
  }
  EXPECT_GE(data->bytes(), 25 * sizeof(int64_t));
  MU_ASSERT_OK_AND_ASSIGN(const auto empty, reader->Read(LeaseOf({})));
  EXPECT_EQ(empty->batches(), 0u);
}

TEST_F(DatasetReaderTest, RefusesLeasesThatDoNotFit) {
  const auto reader = Reader(Counting({25}));
  for (const pb::BlockProto& block :
       {Block(1, 0, 1), Block(0, 26, 0), Block(0, 25, 1), Block(0, 20, 6),
        Block(0, ~uint64_t{0}, 2), Block(0, 1, ~uint32_t{0})}) {
    EXPECT_THAT(reader->Read(LeaseOf({block})).status(),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
}

// The job's own fault, with what to change; a smaller lease is read.
TEST_F(DatasetReaderTest, RefusesLeasesThatTakeTooMuchMemory) {
  const pb::DatasetProto dataset = Counting({200'000});
  const auto reader = Reader(dataset, /*most_lease_bytes=*/size_t{1} << 20);
  MU_ASSERT_OK(reader->Layout(0).status());
  const absl::Status refused = reader->Read(LeaseOf({Block(0, 0, 200'000)})).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                AllOf(HasSubstr("a lease of 200000 records"), HasSubstr("1 MB"),
                                      HasSubstr("shuffle.records"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER);
  MU_EXPECT_OK(reader->Read(LeaseOf({Block(0, 0, 100'000)})).status());
}

// Lists take what is in them, which nobody knows before they are read.
TEST_F(DatasetReaderTest, RefusesLeasesWhoseListsTakeTooMuchMemory) {
  pb::DatasetProto dataset;
  dataset.set_batch_size(10);
  dataset.set_block_records(100);
  AddColumn(&dataset, "words", pb::CsvColumnProto::HASH, 0)->set_separator("|");
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    for (int word = 0; word < 300; ++word) absl::StrAppend(&text, word, "|");
    text += "end\n";
  }
  dataset.add_files(Write("lists.csv", text));
  const auto reader = Reader(dataset, /*most_lease_bytes=*/size_t{1} << 20);
  MU_ASSERT_OK(reader->Layout(0).status());
  std::vector<pb::BlockProto> blocks;
  for (uint64_t first = 0; first < 1000; first += 100) blocks.push_back(Block(0, first, 100));
  EXPECT_THAT(reader->Read(LeaseOf(blocks)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a lease of 1000 records")));
  MU_EXPECT_OK(reader->Read(LeaseOf({blocks[0]})).status());
}

TEST_F(DatasetReaderTest, NamesFilesThatAreMissingOrDamaged) {
  pb::DatasetProto dataset = Counting({5});
  dataset.set_files(0, Path("none.csv"));
  const absl::StatusOr<pb::FileLayoutProto> missing = Reader(dataset)->Layout(0);
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv")));
  EXPECT_EQ(KindOf(missing.status()), pb::ERROR_MACHINE) << "another machine may see it";
  EXPECT_EQ(InputFaultOf(missing.status()).kind(), pb::InputFault::MISSING);

  for (const char* ending : {".gz", ".zst"}) {
    pb::DatasetProto packed = Counting({500}, ending);
    MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(packed.files(0)));
    bytes.resize(bytes.size() - 5);
    RemoveFile(packed.files(0)).IgnoreError();
    MU_ASSERT_OK(AppendToFile(packed.files(0), bytes));
    const auto reader = Reader(packed);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(reader->Layout(0),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(packed.files(0))));
    }
  }
  dataset.set_files(0, root_);
  EXPECT_THAT(Reader(dataset)->Layout(0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("directory")));
}

TEST_F(DatasetReaderTest, NoticesFilesThatChange) {
  for (const char* ending : {".csv", ".csv.gz"}) {
    for (int size : {10, 20, 40}) {
      const pb::DatasetProto dataset = Counting({20}, ending);
      const auto reader = Reader(dataset);
      MU_ASSERT_OK(reader->Layout(0).status());
      Counting({size}, ending);
      EXPECT_THAT(reader->Read(LeaseOf({Block(0, 0, 5)})).status(),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           AllOf(HasSubstr(dataset.files(0)), HasSubstr("changed"))));
    }
  }
}

TEST_F(DatasetReaderTest, ManyThreadsReadAtOnce) {
  const pb::DatasetProto dataset = Counting({300, 200}, ".gz");
  const auto reader = Reader(dataset);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10; ++i) {
        const uint64_t first = (i * 17 + static_cast<uint64_t>(t) * 31) % 190;
        const auto data = reader->Read(LeaseOf({Block(1, first, 10), Block(0, first, 10)}));
        ASSERT_THAT(data, testing::IsOk());
        EXPECT_EQ(AllIds(**data)[0], static_cast<int64_t>(300 + first));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The first lines of a real click log, read by nothing of ours but string splitting.
TEST_F(DatasetReaderTest, ReadsTheCriteoSample) {
  const char* root = std::getenv("MUSTER_DATA");
  const std::string path =
      JoinPath(root != nullptr ? root : "", "criteo-1tb-sample/day_0.1000.tsv.gz");
  if (root == nullptr || !FileExists(path))
    GTEST_SKIP() << "MUSTER_DATA is not set or has no " << path;
  pb::DatasetProto dataset;
  dataset.mutable_criteo_tsv()->set_hash_buckets(100000);
  dataset.set_batch_size(1000);
  dataset.set_block_records(128);
  dataset.add_files(path);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  ASSERT_EQ(data->records(), 1000u);
  const Batch batch = data->MakeBatch(0);
  const auto labels = Values<float>(batch, "label"), dense = Values<float>(batch, "dense");
  const auto ids = Values<int64_t>(batch, "ids");

  MU_ASSERT_OK_AND_ASSIGN(const auto stream, OpenUnpacked(path));
  std::string text(1 << 20, 0);
  size_t size = 0;
  while (true) {
    MU_ASSERT_OK_AND_ASSIGN(const size_t n, stream->Read(text.data() + size, text.size() - size));
    if (n == 0) break;
    size += n;
  }
  text.resize(size);
  size_t begin = 0;
  for (int row = 0; row < 1000; ++row) {
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    begin += line.size() + 1;
    std::vector<std::string> fields(1);
    for (char c : line) {
      if (c == '\t') {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    ASSERT_EQ(fields.size(), 40u);
    ASSERT_EQ(labels[row], fields[0] == "1" ? 1.0f : 0.0f);
    for (int i = 0; i < 13; ++i) {
      const double value = fields[1 + i].empty() ? 0.0 : std::max(0.0, std::stod(fields[1 + i]));
      ASSERT_NEAR(dense[row * 13 + i], std::log(1.0 + value), 1e-6)
          << "row " << row << " integer " << i;
    }
    for (int i = 0; i < 26; ++i) {
      const uint64_t value =
          fields[14 + i].empty() ? uint64_t{1} << 32 : std::stoull(fields[14 + i], nullptr, 16);
      ASSERT_EQ(ids[row * 26 + i],
                static_cast<int64_t>(HashCombine(static_cast<uint64_t>(i), value) % 100000));
    }
  }
}

}  // namespace
}  // namespace mu
