// Seeds of the targets that read records and files of data sets.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/compression.h"
#include "common/graph/dataset_schema.h"
#include "common/records/array_head.h"
#include "common/records/tfrecord_format.h"
#include "tests/fuzz/seeds.h"

namespace mu::fuzzing {
namespace {

pb::DatasetProto Criteo() {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("criteo");
  dataset.mutable_criteo_tsv()->set_hash_buckets(100);
  dataset.set_batch_size(2);
  dataset.set_block_records(2);
  return dataset;
}

std::string CriteoText() {
  std::string text = "1\t5\t110\t\t16\t-3\t1\t0\t14\t7\t1\t\t306\t";
  std::string categories;
  for (int i = 0; i < 26; ++i)
    absl::StrAppend(&categories, "\t", i % 5 == 4 ? "" : absl::StrCat(absl::Hex(0x68fd1e64 + i)));
  text += "9" + categories + "\n";
  text += "0" + std::string(13, '\t') + std::string(26, '\t') + "\n\n";
  text += "0\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13" + categories + "\r\n";
  text += "2\tbad\n";
  return text;
}

// Every kind of column, quotes, marks of missing fields and lists.
pb::DatasetProto Csv() {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("csv");
  dataset.set_batch_size(2);
  dataset.set_block_records(2);
  pb::CsvProto* const csv = dataset.mutable_csv();
  csv->set_header(true);
  csv->set_delimiter(",");
  csv->add_missing("?");
  csv->set_trim(true);
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind) {
    pb::CsvColumnProto* const column = csv->add_columns();
    column->set_name(name);
    column->set_index(-1);
    column->set_kind(kind);
    return column;
  };
  add("age", pb::CsvColumnProto::NUMBER)->set_missing_value(30);
  add("user", pb::CsvColumnProto::ID)->set_buckets(1000);
  add("city", pb::CsvColumnProto::HASH)->set_buckets(10);
  add("income", pb::CsvColumnProto::LABEL)->add_positive(">50K");
  pb::CsvColumnProto* const tags = add("tags", pb::CsvColumnProto::HASH);
  tags->set_buckets(16);
  tags->set_separator("|");
  pb::CsvColumnProto* const seen = add("seen", pb::CsvColumnProto::ID);
  seen->set_separator(" ");
  seen->set_field("history");
  return dataset;
}

std::string CsvText() {
  return "\xEF\xBB\xBF"
         "age,user,city,income,tags,history\n"
         "39.5,7,Bonn,>50K,a|b,1 2 3\n"
         "?,8,\"New \"\"York\"\", NY\",<=50K,,\n"
         "\n"
         "-1e3, 9 ,\"two\nlines\",>50K,x|y|z,12\r\n"
         "x,1000,y,z,\"open\n";
}

pb::DatasetProto Libsvm() {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("libsvm");
  dataset.set_batch_size(2);
  dataset.set_block_records(2);
  dataset.mutable_libsvm()->set_features(10);
  dataset.mutable_libsvm()->add_positive("+1");
  return dataset;
}

std::string LibsvmText() {
  return "# a comment\n"
         "+1 1:1 3:0.5 9:-2e1\n"
         "-1\t2:.5 # 4:1\r\n"
         "\n"
         "0\n"
         " \t# another\n"
         "+1 3:1 3:1\n"
         "+1 10:1 qid:4\n";
}

pb::DatasetProto Libffm() {
  pb::DatasetProto dataset = Libsvm();
  dataset.set_name("libffm");
  dataset.mutable_libffm()->set_features(10);
  dataset.mutable_libffm()->set_fields(3);
  dataset.mutable_libffm()->add_positive("1");
  return dataset;
}

std::string LibffmText() {
  return "1 0:1:1 2:3:0.5 0:9:-2e1\n"
         "0\t1:2:.5 # 1:4:1\r\n"
         "\n"
         "0:1:1\n"
         "1 3:1:1 x:1:1\n"
         "1 0:10:1 1:2\n";
}

// Of named fields: every kind and form.
void AddFieldColumns(FieldColumnList* columns, bool typed) {
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind, bool several) {
    pb::CsvColumnProto* const column = columns->Add();
    column->set_name(name);
    column->set_index(-1);
    column->set_kind(kind);
    if (several && typed) column->set_list(true);
    if (several && !typed) column->set_separator("|");
    return column;
  };
  pb::CsvColumnProto* const age = add("age", pb::CsvColumnProto::NUMBER, false);
  age->set_mean(30);
  add("age.text", pb::CsvColumnProto::TEXT, false)->set_field("age");
  age->set_stddev(10);
  pb::CsvColumnProto* const bucket = add("bucket", pb::CsvColumnProto::BUCKET, false);
  bucket->set_field("age");
  bucket->add_boundaries(18);
  bucket->add_boundaries(65);
  pb::CsvColumnProto* const city = add("city", pb::CsvColumnProto::VOCABULARY, false);
  city->set_vocabulary("bonn\nrome\n");
  city->set_oov_buckets(3);
  pb::CsvColumnProto* const colour = add("class", pb::CsvColumnProto::CLASS, false);
  colour->add_classes("red");
  colour->add_classes("7");
  colour->set_missing_id(2);
  pb::CsvColumnProto* const cross = add("cross", pb::CsvColumnProto::CROSS, false);
  cross->add_of("bucket");
  cross->add_of("city");
  cross->set_buckets(100);
  cross->set_seed(5);
  pb::CsvColumnProto* const tags = add("tags", pb::CsvColumnProto::HASH, true);
  tags->set_buckets(16);
  if (typed) {
    tags->set_weight_field("w");
  } else {
    tags->set_weight_separator(":");
  }
  pb::CsvColumnProto* const seen = add("seen", pb::CsvColumnProto::ID, true);
  seen->set_length(3);
  seen->set_padding(9);
  seen->set_truncate(pb::CsvColumnProto::TRUNCATE_BEGIN);
  add("point", pb::CsvColumnProto::NUMBER, true)->add_shape(2);
  add("track", pb::CsvColumnProto::NUMBER, true)->set_length(2);
}

pb::DatasetProto Begin(const char* name) {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name(name);
  dataset.set_batch_size(2);
  dataset.set_block_records(2);
  return dataset;
}

pb::DatasetProto Fields() {
  pb::DatasetProto dataset = Begin("fields");
  dataset.mutable_csv()->set_header(true);
  dataset.mutable_csv()->set_skip_lines(1);
  AddFieldColumns(dataset.mutable_csv()->mutable_columns(), /*typed=*/false);
  return dataset;
}

std::string FieldsText() {
  return "a line before\n"
         "age,city,class,tags,seen,point,track\n"
         "40,rome,red,a:0.5|b:2,1|2|3|4,1|2,\n"
         ",nowhere,7,,5,3|,1|2|3\n"
         "x,bonn,blue,a,1,1,1\n";
}

pb::DatasetProto Jsonl() {
  pb::DatasetProto dataset = Begin("jsonl");
  dataset.mutable_jsonl()->add_missing("?");
  AddFieldColumns(dataset.mutable_jsonl()->mutable_columns(), /*typed=*/true);
  return dataset;
}

std::string JsonlText() {
  return "{\"age\":40,\"city\":\"r\\u006Fme\",\"class\":7,\"tags\":[\"a\",\"b\"],\"w\":[0.5,2],"
         "\"seen\":[1,2,3,4],"
         "\"point\":[1,null],\"track\":[1.5]}\n"
         "{ \"other\" : {\"x\":[true,false,null,-1e-3,\"\\ud83d\\ude00\"]} , \"class\" : \"red\" "
         "}\n"
         "\n"
         "{\"age\":\"?\",\"tags\":[],\"w\":[1]}\n"
         "{\"age\":";
}

pb::DatasetProto Tfrecord() {
  pb::DatasetProto dataset = Begin("tfrecord");
  AddFieldColumns(dataset.mutable_tfrecord()->mutable_columns(), /*typed=*/true);
  return dataset;
}

// A field of type 2 of protobuf's wire format.
std::string Wire(int field, const std::string& bytes) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string Feature(const std::string& name, int list, const std::string& values) {
  return Wire(1, Wire(1, name) + Wire(2, Wire(list, values)));
}

std::string TfrecordBytes() {
  constexpr int kBytes = 1, kFloats = 2, kInts = 3;
  const std::string one("\0\0\x80\x3F", 4);
  const std::string full = Wire(
      1, Feature("age", kFloats, Wire(1, one)) + Feature("city", kBytes, Wire(1, "rome")) +
             Feature("class", kInts, Wire(1, "\x07")) +
             Feature("tags", kBytes, Wire(1, "a") + Wire(1, "b")) +
             Feature("w", kFloats, Wire(1, one + one)) +
             Feature("seen", kInts, Wire(1, "\1\2\3\4")) +
             Feature("point", kFloats, Wire(1, one + one)) + Feature("track", kInts, "\x08\x05"));
  return TfrecordFrame(full) + TfrecordFrame("") + TfrecordFrame(Wire(1, Wire(1, "x"))) +
         TfrecordFrame(full).substr(0, 30);
}

pb::DatasetProto Arrays(pb::ArraysProto::Container container, DType dtype) {
  pb::DatasetProto dataset = Begin("arrays");
  dataset.mutable_arrays()->set_container(container);
  pb::ArrayColumnProto* const column = dataset.mutable_arrays()->add_columns();
  column->set_name("x");
  column->set_dtype(dtype);
  column->add_shape(2);
  return dataset;
}

std::string IdxBytes() { return std::string("\0\0\x08\x02\0\0\0\x03\0\0\0\x02", 12) + "abcdef"; }

}  // namespace

std::map<std::string, fuzz::RecordsInput> RecordTexts() {
  std::map<std::string, fuzz::RecordsInput> inputs;
  *inputs["criteo"].mutable_dataset() = Criteo();
  inputs["criteo"].set_text(CriteoText());
  inputs["criteo"].add_chunks(7);
  *inputs["csv"].mutable_dataset() = Csv();
  inputs["csv"].set_text(CsvText());
  inputs["csv"].add_chunks(3);
  inputs["csv"].add_chunks(20);
  *inputs["libsvm"].mutable_dataset() = Libsvm();
  inputs["libsvm"].set_text(LibsvmText());
  inputs["libsvm"].add_chunks(5);
  pb::DatasetProto bare_criteo = Criteo(), bare_libsvm = Libsvm(), bare_libffm = Libffm();
  bare_criteo.mutable_criteo_tsv()->set_unlabelled(true);
  bare_libsvm.mutable_libsvm()->set_unlabelled(true);
  bare_libffm.mutable_libffm()->set_unlabelled(true);
  const std::string clicks = CriteoText();
  for (const auto& [name, dataset, text] :
       {std::tuple("bare_criteo", bare_criteo, clicks + clicks.substr(clicks.find('\t') + 1)),
        std::tuple("bare_libsvm", bare_libsvm, LibsvmText() + "1:1 2:1\n"),
        std::tuple("bare_libffm", bare_libffm, LibffmText()),
        std::tuple("libffm", Libffm(), LibffmText()), std::tuple("fields", Fields(), FieldsText()),
        std::tuple("jsonl", Jsonl(), JsonlText()),
        std::tuple("tfrecord", Tfrecord(), TfrecordBytes()),
        std::tuple("idx", Arrays(pb::ArraysProto::IDX, kFloat32), IdxBytes()),
        std::tuple("npy", Arrays(pb::ArraysProto::NPY, kInt64),
                   NpyOf(Tensor::Of<int64_t>({2, 2}, {1, 2, 3, 4}))),
        std::tuple("npy_floats", Arrays(pb::ArraysProto::NPY, kFloat32),
                   NpyOf(Tensor::Of<float>({2, 2}, {1, 2, 3, 4})))}) {
    fuzz::RecordsInput& input = inputs[name];
    *input.mutable_dataset() = dataset;
    input.set_text(text);
    input.add_chunks(11);
    input.add_chunks(2);
  }
  fuzz::RecordsInput& plain = inputs["no_quotes"];
  pb::CsvProto* const csv = plain.mutable_dataset()->mutable_csv();
  csv->set_delimiter("\t");
  csv->set_quote("");
  csv->add_columns()->set_name("first");
  pb::CsvColumnProto* const id = csv->add_columns();
  id->set_name("third");
  id->set_index(2);
  id->set_kind(pb::CsvColumnProto::ID);
  id->set_required(true);
  plain.set_text("1\t2\t3\n.5\t\t-4\n\t\t\n1e39\t2\t9223372036854775808\n");
  return inputs;
}

std::map<std::string, fuzz::DatasetInput> DataSets() {
  std::map<std::string, fuzz::DatasetInput> inputs;
  for (const auto& [name, dataset, text] :
       {std::tuple("criteo", Criteo(), CriteoText()), std::tuple("csv", Csv(), CsvText()),
        std::tuple("libsvm", Libsvm(), LibsvmText()), std::tuple("libffm", Libffm(), LibffmText()),
        std::tuple("jsonl", Jsonl(), JsonlText()),
        std::tuple("tfrecord", Tfrecord(), TfrecordBytes())}) {
    for (const Compression compression :
         {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
      fuzz::DatasetInput& input = inputs[absl::StrCat(name, static_cast<int>(compression))];
      *input.mutable_dataset() = dataset;
      input.mutable_dataset()->set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
      input.mutable_dataset()->mutable_records()->set_modulo(4);
      for (const uint32_t keep : {0, 1, 3})
        input.mutable_dataset()->mutable_records()->add_keep(keep);
      input.add_files(Compress(compression, text).value());
      input.add_files(text);
      pb::LeaseProto* const lease = input.add_leases();
      lease->set_dataset(1);
      lease->set_permutation(3);
      lease->add_blocks()->set_count(2);
      pb::BlockProto* const block = lease->add_blocks();
      block->set_file(1);
      block->set_first(1);
      block->set_count(1);
      block->set_offset(1);
      block->set_bytes(50);
      block->set_line(2);
    }
  }
  // Two files in lockstep, and a third that is no array.
  fuzz::DatasetInput& pair = inputs["arrays"];
  *pair.mutable_dataset() = Arrays(pb::ArraysProto::IDX, kFloat32);
  pair.mutable_dataset()->add_companions();
  pb::ArrayColumnProto* const label = pair.mutable_dataset()->mutable_arrays()->add_columns();
  label->set_name("label");
  label->set_dtype(kInt64);
  label->set_bound(10);
  pair.add_files(IdxBytes());
  pair.add_companion_files(std::string("\0\0\x08\x01\0\0\0\x03\1\2\x0B", 11));
  pair.add_files("no array");
  pair.add_companion_files("\x93NUMPY");
  pair.mutable_dataset()->set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  pair.add_leases()->add_blocks()->set_count(3);
  return inputs;
}

fuzz::LayoutInput TwoLayouts() {
  fuzz::LayoutInput input;
  *input.mutable_dataset() = Criteo();
  input.mutable_dataset()->set_shuffle_records(4);
  for (const uint64_t records : {uint64_t{5}, uint64_t{2}}) {
    pb::FileLayoutProto* const layout = input.add_files();
    layout->set_records(records);
    layout->set_bytes(100 * records);
    for (uint64_t first = 0; first < records; first += 2) {
      layout->add_offsets(100 * first);
      layout->add_lines(1 + first);
    }
  }
  return input;
}

}  // namespace mu::fuzzing
