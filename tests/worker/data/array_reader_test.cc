// IDX and NPY files: arrays that are read in lockstep.
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "common/records/array_head.h"
#include "tests/worker/data/data_test_util.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return text;
}

std::string IdxHead(int type, const std::vector<uint32_t>& dims) {
  std::string head = {'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) head += BigEndian(dim, 4);
  return head;
}

// Image i of `count`, 2 by 2, is filled with 4i, 4i + 1, ...; its label is i % 10.
std::string Images(uint32_t count) {
  std::string file = IdxHead(8, {count, 2, 2});
  for (uint32_t i = 0; i < 4 * count; ++i) file.push_back(static_cast<char>(i));
  return file;
}
std::string Labels(uint32_t count) {
  std::string file = IdxHead(8, {count});
  for (uint32_t i = 0; i < count; ++i) file.push_back(static_cast<char>(i % 10));
  return file;
}

class ArrayReaderTest : public DataTest {
 protected:
  pb::DatasetProto Idx(const std::vector<std::string>& images,
                       const std::vector<std::string>& labels) {
    pb::DatasetProto dataset;
    pb::ArrayColumnProto* image = dataset.mutable_arrays()->add_columns();
    image->set_name("image");
    image->set_dtype(pb::FLOAT32);
    image->add_shape(2);
    image->add_shape(2);
    image->set_scale(0.5f);
    dataset.mutable_files()->Assign(images.begin(), images.end());
    if (!labels.empty()) {
      pb::ArrayColumnProto* label = dataset.mutable_arrays()->add_columns();
      label->set_name("label");
      label->set_dtype(pb::INT64);
      dataset.add_companions()->mutable_files()->Assign(labels.begin(), labels.end());
    }
    dataset.set_batch_size(100);
    dataset.set_block_records(4);
    return dataset;
  }

  // What reading a whole file says.
  absl::Status Read(const pb::DatasetProto& dataset) {
    return ReadFileWhole(Reader(dataset).get()).status();
  }

  pb::DatasetProto Npy(const std::string& contents, DType dtype, std::vector<int64_t> shape = {}) {
    pb::DatasetProto dataset;
    dataset.mutable_arrays()->set_container(pb::ArraysProto::NPY);
    pb::ArrayColumnProto* column = dataset.mutable_arrays()->add_columns();
    column->set_name("x");
    column->set_dtype(dtype);
    column->mutable_shape()->Assign(shape.begin(), shape.end());
    dataset.add_files(Write("x.npy", contents));
    dataset.set_batch_size(100);
    return dataset;
  }
};

TEST_F(ArrayReaderTest, ImagesAndLabelsAreReadTogether) {
  for (const char* ending : {"", ".gz", ".zst"}) {
    const auto reader = Reader(Idx({Write(absl::StrCat("i0", ending), Images(6)),
                                    Write(absl::StrCat("i1", ending), Images(3))},
                                   {Write(absl::StrCat("l0", ending), Labels(6)),
                                    Write(absl::StrCat("l1", ending), Labels(3))}));
    MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, reader->Layout(0));
    EXPECT_EQ(layout.records(), 6u);
    EXPECT_THAT(layout.offsets(), ElementsAre(16, 32));
    MU_ASSERT_OK_AND_ASSIGN(const auto data,
                            reader->Read(LeaseOf({Block(0, 4, 2), Block(1, 1, 2)})));
    const Batch batch = data->MakeBatch(0);
    EXPECT_EQ(batch.Find("image")->shape(), Shape({4, 2, 2}));
    EXPECT_THAT(Values<float>(batch, "image"),
                ElementsAre(8, 8.5, 9, 9.5, 10, 10.5, 11, 11.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5));
    EXPECT_THAT(Values<int64_t>(batch, "label"), ElementsAre(4, 5, 1, 2));
  }
}

TEST_F(ArrayReaderTest, AWorkerThatKnowsThePlacesReadsOnlyHeads) {
  const pb::DatasetProto dataset = Idx({Write("i", Images(6))}, {Write("l", Labels(6))});
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
  pb::BlockProto block = Block(0, 4, 2);
  block.set_offset(layout.offsets(1));
  block.set_line(layout.lines(1));
  block.set_bytes(layout.bytes() - layout.offsets(1));
  MU_ASSERT_OK_AND_ASSIGN(const auto data, Reader(dataset)->Read(LeaseOf({block})));
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "label"), ElementsAre(4, 5));
}

TEST_F(ArrayReaderTest, SelectionAndPermutationKeepPairsTogether) {
  pb::DatasetProto dataset = Idx({Write("i", Images(40))}, {Write("l", Labels(40))});
  dataset.mutable_records()->set_modulo(4);
  dataset.mutable_records()->add_keep(1);
  dataset.mutable_records()->add_keep(3);
  MU_ASSERT_OK_AND_ASSIGN(const auto data,
                          Reader(dataset)->Read(LeaseOf({Block(0, 3, 37)}, /*permutation=*/9)));
  ASSERT_EQ(data->records(), 19u);
  const Batch batch = data->MakeBatch(0);
  const std::vector<float> images = Values<float>(batch, "image");
  const std::vector<int64_t> labels = Values<int64_t>(batch, "label");
  int descents = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int index = static_cast<int>(images[4 * i] / 2);
    EXPECT_EQ(index % 2, 1);
    EXPECT_EQ(labels[i], index % 10);
    descents += i > 0 && images[4 * i] < images[4 * i - 4];
  }
  EXPECT_GT(descents, 0);
}

TEST_F(ArrayReaderTest, NamesWhatIsWrongWithFiles) {
  const std::string images = Write("i", Images(6)), labels = Write("l", Labels(6));
  const auto invalid = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(Read(Idx({images}, {Write("l5", Labels(5))})),
              invalid("holds 6 records, but " + Path("l5") + " holds 5"));
  EXPECT_THAT(Read(Idx({Write("cut", Images(6).substr(0, 38))}, {labels})),
              invalid("cut: record 5 at byte 36: the file ends within a record of 4 bytes"));
  EXPECT_THAT(
      Read(Idx({Write("short", Images(6).substr(0, 36))}, {labels})),
      invalid("promises 6 records of 4 bytes, so that the file has 40 bytes, but it has 36"));
  EXPECT_THAT(Read(Idx({Write("long", Images(6) + "abcd")}, {labels})), invalid("but it has 44"));
  EXPECT_THAT(Read(Idx({images}, {Write("l-cut", Labels(6).substr(0, 12))})),
              invalid("l-cut: its head promises 6 records"));
  EXPECT_THAT(Read(Idx({labels}, {labels})),
              invalid("column image: the file holds uint8 [6], that is 1 elements a record, but "
                      "the column has 4 (shape [2, 2])"));
  EXPECT_THAT(Read(Idx({Write("text", "label,image\n")}, {labels})),
              invalid("this is no IDX file"));
  EXPECT_THAT(Read(Idx({Write("head", Images(6).substr(0, 9))}, {labels})),
              invalid("ends within its head"));
  EXPECT_THAT(Read(Idx({Write("type", IdxHead(7, {1}) + "a")}, {labels})),
              invalid("unknown element type 7"));
  EXPECT_THAT(Read(Idx({Write("huge", IdxHead(8, {1, 0xFFFFFFFF, 0xFFFFFFFF}))}, {labels})),
              invalid("more than 64 MiB"));
  EXPECT_THAT(Read(Idx({Write("none", IdxHead(8, {}))}, {labels})), invalid("no axes"));
  EXPECT_THAT(Read(Idx({Write("zero", IdxHead(8, {1, 0, 2}))}, {labels})),
              invalid("has no elements"));
  pb::DatasetProto unpaired = Idx({images}, {labels});
  unpaired.add_files(images);
  EXPECT_THAT(DatasetReader::Create(unpaired, cache_),
              invalid("has 2 files, but 1 of those that are read together"));
}

TEST_F(ArrayReaderTest, BadRecordsAreCountedWithTheirPlace) {
  pb::DatasetProto dataset = Idx({Write("i", Images(12))}, {Write("l", Labels(12))});
  dataset.mutable_arrays()->mutable_columns(1)->set_bound(9);
  EXPECT_THAT(Read(dataset), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr(Path("l") + ": record 9 at byte 17: column label: "
                                                            "9 is not below 9")));
  dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_EQ(data->records(), 11u);
  EXPECT_EQ(data->bad_records(), 1u);
  // The records behind it are still pairs.
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "label"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1));
  EXPECT_EQ(Values<float>(data->MakeBatch(0), "image")[4 * 10], 22);
}

TEST_F(ArrayReaderTest, ElementsOfEveryTypeOfIdx) {
  const auto read = [&](int type, const std::string& bytes, DType dtype) {
    pb::DatasetProto dataset = Idx({Write("a", IdxHead(type, {2}) + bytes)}, {});
    pb::ArrayColumnProto* column = dataset.mutable_arrays()->mutable_columns(0);
    column->clear_shape();
    column->clear_scale();
    column->set_dtype(dtype);
    const auto data = ReadFileWhole(Reader(dataset).get());
    EXPECT_THAT(data, testing::IsOk());
    const Batch batch = (*data)->MakeBatch(0);
    if (dtype == kFloat32) return Values<float>(batch, "image");
    const std::vector<int64_t> ints = Values<int64_t>(batch, "image");
    return std::vector<float>(ints.begin(), ints.end());
  };
  const auto bits = [](double x) {
    uint64_t value;
    std::memcpy(&value, &x, 8);
    return value;
  };
  EXPECT_THAT(read(0x08, "\xFF\x01", kFloat32), ElementsAre(255, 1));
  EXPECT_THAT(read(0x09, "\xFF\x01", kFloat32), ElementsAre(-1, 1));
  EXPECT_THAT(read(0x0B, BigEndian(0xFFFE, 2) + BigEndian(300, 2), kFloat32), ElementsAre(-2, 300));
  EXPECT_THAT(read(0x0C, BigEndian(70'000, 4) + BigEndian(3, 4), kInt64), ElementsAre(70'000, 3));
  EXPECT_THAT(read(0x0D, BigEndian(0x40490FDB, 4) + BigEndian(0xBF800000, 4), kFloat32),
              ElementsAre(3.14159274f, -1));
  EXPECT_THAT(read(0x0E, BigEndian(bits(0.1), 8) + BigEndian(bits(-2), 8), kFloat32),
              ElementsAre(0.1f, -2));
}

TEST_F(ArrayReaderTest, WhatNpyOfWritesIsReadBack) {
  const Tensor floats = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6.5});
  MU_ASSERT_OK_AND_ASSIGN(const auto data,
                          ReadFileWhole(Reader(Npy(NpyOf(floats), kFloat32, {2})).get()));
  EXPECT_THAT(Values<float>(data->MakeBatch(0), "x"), ElementsAre(1, 2, 3, 4, 5, 6.5));
  const Tensor ints = Tensor::Of<int64_t>({2}, {int64_t{1} << 60, 0});
  const std::string file = NpyOf(ints);
  EXPECT_EQ((file.size() - 16) % 64, 0u);
  MU_ASSERT_OK_AND_ASSIGN(const auto ids, ReadFileWhole(Reader(Npy(file, kInt64)).get()));
  EXPECT_THAT(Values<int64_t>(ids->MakeBatch(0), "x"), ElementsAre(int64_t{1} << 60, 0));
}

TEST_F(ArrayReaderTest, FilesThatCameWithTheDataset) {
  pb::DatasetProto dataset = Idx({"memory:i"}, {"memory:l"});
  dataset.mutable_records()->set_modulo(2);
  dataset.mutable_records()->add_keep(1);
  for (const auto& [path, contents] :
       {std::pair("memory:i", Images(6)), std::pair("memory:l", Labels(6))}) {
    pb::InlineFileProto* file = dataset.add_inline_files();
    file->set_path(path);
    file->set_contents(contents);
  }
  const auto reader = Reader(dataset);
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({Block(0, 1, 4)})));
    EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "label"), ElementsAre(1, 3));
    EXPECT_THAT(Values<float>(data->MakeBatch(0), "image"),
                ElementsAre(2, 2.5, 3, 3.5, 6, 6.5, 7, 7.5));
  }
}

// Their paths hold names of columns, which may be long.
TEST_F(ArrayReaderTest, FilesWithLongPathsThatCameWithTheDataset) {
  const std::string path = "memory:" + std::string(293, 'i');
  pb::DatasetProto dataset = Idx({path}, {});
  pb::InlineFileProto* file = dataset.add_inline_files();
  file->set_path(path);
  file->set_contents(Images(2));
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_THAT(Values<float>(data->MakeBatch(0), "image"),
              ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5));
}

TEST_F(ArrayReaderTest, Mnist) {
  const char* root = std::getenv("MUSTER_DATA");
  const std::string folder = JoinPath(root != nullptr ? root : "", "mnist");
  if (root == nullptr || !FileExists(folder)) GTEST_SKIP() << "no mnist below MUSTER_DATA";
  pb::DatasetProto dataset =
      Idx({folder + "/t10k-images-idx3-ubyte.gz"}, {folder + "/t10k-labels-idx1-ubyte.gz"});
  pb::ArrayColumnProto* image = dataset.mutable_arrays()->mutable_columns(0);
  image->clear_shape();
  image->add_shape(28);
  image->add_shape(28);
  image->set_scale(1.0f / 255);
  const auto reader = Reader(dataset);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, reader->Layout(0));
  EXPECT_EQ(layout.records(), 10'000u);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({Block(0, 0, 1000)})));
  // The first digit of the test set.
  EXPECT_EQ(Values<int64_t>(data->MakeBatch(0), "label")[0], 7);
  float sum = 0;
  for (const float x : Values<float>(data->MakeBatch(0), "image")) {
    EXPECT_TRUE(x >= 0 && x <= 1);
    sum += x;
  }
  EXPECT_NEAR(sum / (100 * 784), 0.13, 0.03);  // mostly black
}

std::string NpyFile(const std::string& dictionary, const std::string& elements, int version = 1) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), '\0', static_cast<char>(dictionary.size()), '\0'};
  if (version > 1) file += {'\0', '\0'};
  return file + dictionary + elements;
}

TEST_F(ArrayReaderTest, AnotherFileIsNoticedByAWorkerThatKnowsThePlaces) {
  const std::string idx = Images(6);
  const std::string npy =
      NpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }", "abcdefgh");
  pb::DatasetProto column = Npy(npy, kFloat32);
  column.set_block_records(4);
  for (const auto& [dataset, name, contents] :
       {std::tuple(Idx({Write("i", idx)}, {}), "i", idx), std::tuple(column, "x.npy", npy)}) {
    SCOPED_TRACE(name);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
    ASSERT_EQ(layout.offsets_size(), 2);
    ASSERT_EQ(layout.beginnings_size(), 2);
    pb::BlockProto block = Block(0, 4, 2);
    block.set_offset(layout.offsets(1));
    block.set_line(layout.lines(1));
    block.set_bytes(layout.bytes() - layout.offsets(1));
    block.set_file_bytes(layout.bytes());
    block.set_beginning(layout.beginnings(1));
    MU_EXPECT_OK(Reader(dataset)->Read(LeaseOf({block})).status());
    std::string other = contents;
    other[layout.offsets(1)] = 'x';
    Write(name, other);
    EXPECT_THAT(Reader(dataset)->Read(LeaseOf({block})).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has changed")));
  }
}

TEST_F(ArrayReaderTest, HeadsAsNumpyWritesThem) {
  const auto read = [&](const std::string& file, std::vector<int64_t> shape = {}) {
    const auto data = ReadFileWhole(Reader(Npy(file, kFloat32, std::move(shape))).get());
    EXPECT_THAT(data, testing::IsOk());
    return data.ok() ? Values<float>((*data)->MakeBatch(0), "x") : std::vector<float>();
  };
  // numpy.save of numpy.arange(2, dtype=...), which writes (2,).
  EXPECT_THAT(read(NpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n", "\1\2")),
              ElementsAre(1, 2));
  EXPECT_THAT(read(NpyFile("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }",
                           std::string("\1\0\xFF\xFF", 4), 2),
                   {2}),
              ElementsAre(1, -1));
  EXPECT_THAT(read(NpyFile("{'shape': (2,), 'fortran_order': True, 'descr': '>f2'}",
                           "\x3C\x01\xC0\x01", 3)),
              ElementsAre(1 + 1.0f / 1024, -2 - 1.0f / 512));
  EXPECT_THAT(read(NpyFile("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }",
                           std::string("\0\1", 2))),
              ElementsAre(0, 1));
  const auto refuse = [&](const std::string& file, const std::string& what,
                          DType dtype = kFloat32) {
    EXPECT_THAT(Read(Npy(file, dtype)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << file;
  };
  const std::string shape = ", 'fortran_order': False, 'shape': (1,), }";
  refuse(NpyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "abcd"),
         "ascontiguousarray");
  refuse(NpyFile("{'descr': [('a', '<f4')]" + shape, "abcd"), "array of numbers for each column");
  refuse(NpyFile("{'descr': '|S4'" + shape, "abcd"), "array of numbers for each column");
  refuse(NpyFile("{'descr': '<c8'" + shape, "abcdabcd"), "array of numbers for each column");
  refuse(NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "abcd"), "no axes");
  refuse(NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", "abcd"),
         "cannot be read");
  refuse(NpyFile("{'descr': '<f4'" + shape, "abcd", 4), "has version 4");
  refuse(NpyFile("{'descr': '<f4'" + shape, "abcd"), "whole numbers", kInt64);
  refuse(NpyFile("{'descr': '<f4'" + shape, std::string("\0\0\xC0\x7F", 4)),
         "x.npy: record 0 at byte 67: column x: element 0 is not a finite number");
  refuse(NpyFile("{'descr': '<i4'" + shape, "\xFF\xFF\xFF\xFF"), "-1 is negative", kInt64);
  refuse("\x93NUMP", "within its head");
  refuse("PK\3\4", "this is no NPY file");
}

}  // namespace
}  // namespace mu
