// Seeds of the targets that read records and files of data sets.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/compression.h"
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
  return "+1 1:1 3:0.5 9:-2e1\n"
         "-1\t2:.5 # 4:1\r\n"
         "\n"
         "0\n"
         "+1 3:1 3:1\n"
         "+1 10:1 qid:4\n";
}

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
        std::tuple("libsvm", Libsvm(), LibsvmText())}) {
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
