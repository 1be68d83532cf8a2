#include "common/graph/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"
#include "tests/common/graph/specs.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

pb::FunctionProto Example() {
  pb::FunctionProto f;
  f.set_name("step");
  f.set_dataset(2);
  f.add_args()->set_name("scale");
  f.mutable_args(0)->set_dtype(kFloat32);
  const int ids =
      AddNode(f, "batch_column", {}, {Text("column", "ids"), Type(kInt64), Dims({-1})}, 5);
  const int scale = AddNode(f, "arg", {}, {Int("index", 0), Type(kFloat32)}, 6);
  const int unique = AddNode(f, "unique", {{ids, 0}});
  const int numbers =
      AddNode(f, "constant", {}, {Value(Tensor::Of<float>({5}, {1, 2.5, 3, 4, 5}))}, 7);
  const int product = AddNode(f, "multiply", {{numbers, 0}, {scale, 0}}, {}, 8);
  AddReturn(f, "y", product);
  AddReturn(f, "where", unique, 1);
  return f;
}

TEST(Print, Text) {
  EXPECT_EQ(
      FunctionToText(Example()),
      "function step(scale: float32) dataset 2\n"
      "  %0 = batch_column() {column=\"ids\", dtype=int64, shape=[?]} : int64[?]  # model.cc:5\n"
      "  %1 = arg() {dtype=float32, index=0} : float32[]  # model.cc:6\n"
      "  %2 = unique(%0) : (int64[?], int32[?])\n"
      "  %3 = constant() {value=float32[5]{1, 2.5, 3, 4, ...}} : float32[5]  # model.cc:7\n"
      "  %4 = multiply(%3, %1) : float32[5]  # model.cc:8\n"
      "  return y = %4\n"
      "  return where = %2:1\n");
}

TEST(Print, TextOfWhatDoesNotVerifyHasNoTypes) {
  pb::FunctionProto f = Example();
  f.mutable_nodes(4)->set_op("no_such_op");
  EXPECT_THAT(FunctionToText(f), HasSubstr("  %4 = no_such_op(%3, %1)  # model.cc:8\n"));
}

TEST(Print, Dot) {
  const std::string dot = FunctionToDot(Example());
  EXPECT_THAT(dot, HasSubstr("digraph \"step\" {\n"));
  EXPECT_THAT(dot, HasSubstr("  n4 [label=\"%4 multiply\", fillcolor=white];\n"));
  EXPECT_THAT(dot, HasSubstr("  n3 -> n4 [label=\"float32[5]\"];\n"));
  EXPECT_THAT(dot, HasSubstr("n4 -> r0;"));
  EXPECT_THAT(dot, HasSubstr("column=\\\"ids\\\""));  // quotes are escaped
}

TEST(DatasetSchema, Criteo) {
  pb::DatasetProto dataset;
  dataset.mutable_criteo_tsv()->set_hash_buckets(10);
  const auto columns = SchemaOf(dataset);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].name(), "label");
  EXPECT_EQ(columns[1].name(), "dense");
  EXPECT_EQ(Shape(columns[1].shape()), Shape({-1, 13}));
  EXPECT_EQ(columns[2].dtype(), kInt64);
  EXPECT_EQ(Shape(columns[2].shape()), Shape({-1, 26}));
}

TEST(DatasetSchema, CsvWithAList) {
  pb::DatasetProto dataset;
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind, const char* separator) {
    pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
    column->set_separator(separator);
  };
  add("age", pb::CsvColumnProto::NUMBER, "");
  add("item", pb::CsvColumnProto::ID, "");
  add("genres", pb::CsvColumnProto::HASH, "|");
  add("clicked", pb::CsvColumnProto::LABEL, "");
  const auto columns = SchemaOf(dataset);
  std::vector<std::string> described;
  for (const auto& column : columns) {
    described.push_back(column.name() + " " +
                        TensorSpec{column.dtype(), Shape(column.shape())}.ToString());
  }
  EXPECT_THAT(described,
              ::testing::ElementsAre("age float32[?]", "item int64[?]", "genres.values int64[?]",
                                     "genres.splits int32[?]", "clicked float32[?]"));
}

TEST(DatasetSchema, NoFormatHasNoColumns) { EXPECT_TRUE(SchemaOf(pb::DatasetProto()).empty()); }

TEST(NearestName, FindsTyposAndNothingElse) {
  EXPECT_EQ(NearestName("labl", {"dense", "label"}), "label");
  EXPECT_EQ(NearestName("embeding_dim", {"embedding_dim", "hash_buckets"}), "embedding_dim");
  EXPECT_EQ(NearestName("zzz", {"label", "dense"}), "");
  EXPECT_EQ(NearestName("", {"a"}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), {"label"}), "");
  EXPECT_EQ(DidYouMean("zzz", {"label"}), "");
  EXPECT_EQ(DidYouMean("lable", {"label"}), "; did you mean \"label\"?");
}

}  // namespace
}  // namespace mu
