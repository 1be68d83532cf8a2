// Every kind of mistake in a job file, with its exact place and remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/config_node.h"
#include "coordinator/cli/data_keys.h"
#include "coordinator/cli/job_file.h"
#include "tests/coordinator/cli/job_text.h"
#include "tests/testing/example_optimizers.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::GoodCsvJob;
using testing::GoodJob;
using testing::Mistake;
using testing::ProblemsOf;
using testing::With;

class JobMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(JobMistakeTest, IsNamedWithPlaceAndRemedy) {
  EXPECT_EQ(ProblemsOf(With(GoodJob(), GetParam().from, GetParam().to)), GetParam().problems);
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, JobMistakeTest,
    ::testing::Values(
        Mistake{
            "unknown_key", "epochs", "epoch",
            "job.yaml:16:12: there is no key `epoch` under `training`; did you mean `epochs`?\n"},
        Mistake{"unknown_required_key", "learning_rate", "learnin_rate",
                "job.yaml:15:13: there is no key `learnin_rate` under `optimizer.adagrad`; did you "
                "mean "
                "`learning_rate`?\n"},
        Mistake{
            "key_of_another_map", "seed: 1", "batch_size: 1",
            "job.yaml:2:1: there is no key `batch_size` in a job; it belongs under `training`\n"},
        Mistake{"far_key", "seed: 1", "zzzzzzzzz: 1",
                "job.yaml:2:1: there is no key `zzzzzzzzz` in a job; it may be one of: name, seed, "
                "data, model, "
                "optimizer, training, job_dir, checkpoint, recovery, warm_start, evaluation, "
                "early_stopping, parameters\n"},
        Mistake{"warmup_of_too_many_steps", "epochs", "warmup_steps: 4294967296, epochs",
                "job.yaml:16:26: `training.warmup_steps` must be auto or a whole number up to "
                "4294967295, not `4294967296`; 0 begins with the whole learning rate\n"},
        Mistake{"unknown_metric", "seed: 1", "evaluation: {metrics: [auc, acuracy]}",
                "job.yaml:2:29: `evaluation.metrics[1]` is wrong: there is no metric `acuracy`; "
                "did you mean `accuracy`?\n"},
        Mistake{"metric_without_its_number", "seed: 1", "evaluation: {metrics: [ndcg]}",
                "job.yaml:2:24: `evaluation.metrics[0]` is wrong: `ndcg` is not how this metric is "
                "written; write ndcg@10\n"},
        Mistake{"metric_twice", "seed: 1", "evaluation: {metrics: [auc, auc]}",
                "job.yaml:2:29: `evaluation.metrics[1]` is `auc` once more; remove it\n"},
        Mistake{"empty_group", "seed: 1", "evaluation: {group: \"\"}",
                "job.yaml:2:21: `evaluation.group` must name a column of the data; or remove "
                "it\n"},
        Mistake{"unknown_recovery", "seed: 1", "recovery: some",
                "job.yaml:2:11: `recovery` must be all or shard, not `some`; all takes every "
                "server back to the last "
                "checkpoint, shard only the lost one\n"},
        Mistake{"checkpoint_every", "seed: 1", "checkpoint: {every: soon}",
                "job.yaml:2:21: `checkpoint.every` must be a time of at least 1s or never, not "
                "`soon`; write 30s, 5m or "
                "1h\n"},
        Mistake{"unknown_model", "dlrm:", "dlmr:",
                "job.yaml:9:3: there is no key `dlmr` under `model`; did you mean `dlrm`?\n"},
        Mistake{"text_for_number", "512,", "many,",
                "job.yaml:16:35: `training.batch_size` must be a whole number, not `many`\n"},
        Mistake{"quoted_number", "512,", "\"512\",",
                "job.yaml:16:35: `training.batch_size` must be a whole number, not the text "
                "\"512\"; write it without "
                "quotes\n"},
        Mistake{"map_for_number", "512,", "{a: 1},",
                "job.yaml:16:35: `training.batch_size` must be a whole number, not a map\n"},
        Mistake{"list_for_map", "{records: 1000}", "[1]",
                "job.yaml:7:14: `data.train.shuffle` must be a map of keys, not a list; its keys "
                "are: records\n"},
        Mistake{"scalar_for_list", "[32, 16]", "16",
                "job.yaml:12:17: `model.dlrm.bottom_mlp` must be a list, not `16`; write [16]\n"},
        Mistake{"duplicate_key", "seed: 1", "name: again",
                "job.yaml:2:1: the key `name` stands here a second time, the first was at "
                "job.yaml:1:1; remove one of "
                "the two\n"},
        Mistake{"octal", "512,", "010,",
                "job.yaml:16:35: `training.batch_size` must be a whole number, not `010` (YAML "
                "reads a leading zero as "
                "octal: write it without)\n"},
        Mistake{"exponent", "512,", "1e3,",
                "job.yaml:16:35: `training.batch_size` must be a whole number, not `1e3` (write it "
                "out in digits)\n"},
        Mistake{"negative", "512,", "-5,",
                "job.yaml:16:35: `training.batch_size` must be from 1 to 1048576, not -5\n"},
        Mistake{"overflow_32", "512,", "4294967296,",
                "job.yaml:16:35: `training.batch_size` must be from 1 to 1048576, not "
                "4294967296\n"},
        Mistake{"negative_in_list", "[32, 16]", "[-32, 16]",
                "job.yaml:12:18: `model.dlrm.bottom_mlp[0]` must be from 1 to 65536, not -32\n"},
        // What follows from it is not told: the list does not end in embedding_dim.
        Mistake{"negative_last_in_list", "[32, 16]", "[32, -16]",
                "job.yaml:12:22: `model.dlrm.bottom_mlp[1]` must be from 1 to 65536, not -16\n"},
        Mistake{"overflow_64", "seed: 1", "seed: 18446744073709551616",
                "job.yaml:2:7: `seed` must be within 64 bits, not `18446744073709551616`\n"},
        Mistake{"nan", "0.02", ".nan",
                "job.yaml:15:28: `optimizer.adagrad.learning_rate` must be a finite number, not "
                "`.nan`\n"},
        Mistake{"infinite", "0.02", "-.inf",
                "job.yaml:15:28: `optimizer.adagrad.learning_rate` must be a finite number, not "
                "`-.inf`\n"},
        Mistake{"float_overflow", "0.02", "1e39",
                "job.yaml:15:28: `optimizer.adagrad.learning_rate` must be within a float's range "
                "(up to 3.4e38), not "
                "`1e39`\n"},
        Mistake{"float_underflow", "0.02", "1e-60",
                "job.yaml:15:28: `optimizer.adagrad.learning_rate` must be within a float's range "
                "(from 1e-45), not "
                "`1e-60`\n"},
        Mistake{"no_value", "seed: 1", "seed:",
                "job.yaml:2:1: `seed` has no value; write a whole number or remove the key\n"},
        Mistake{"two_choices", "  adagrad", "  sgd: {learning_rate: 1}\n  adagrad",
                "job.yaml:16:3: `optimizer.adagrad` stands beside another choice under "
                "`optimizer`; keep one of: " +
                    testing::OptimizerNames() + "\n"},
        Mistake{"merge_key", "seed: 1", "<<: {seed: 1}",
                "job.yaml:2:1: merge keys (`<<`) are not supported; write the keys out\n"},
        Mistake{"tag", "seed: 1", "seed: !!int 1",
                "job.yaml:2:7: the tag `tag:yaml.org,2002:int` is not understood; remove it: a "
                "key's type follows from "
                "its name\n"},
        Mistake{"second_document", "training:", "---\ntraining:",
                "job.yaml:17:1: a second document begins here (after `---`); put each job into a "
                "file of its own\n"},
        Mistake{"unset_variable", "criteo-dlrm", "\"${NOBODY_SET_THIS}\"",
                "job.yaml:1:7: the environment variable NOBODY_SET_THIS is not set; set it, or "
                "give a default as in "
                "${NOBODY_SET_THIS:-default}\n"},
        Mistake{"open_brace", "criteo-dlrm", "\"a${X\"",
                "job.yaml:1:7: `${` has no `}`; close it, or write `$${` for the characters "
                "themselves\n"},
        Mistake{"bad_variable", "criteo-dlrm", "\"${1X}\"",
                "job.yaml:1:7: `${1X}` does not name an environment variable; write ${NAME} or "
                "${NAME:-default}\n"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Values, JobMistakeTest,
    ::testing::Values(
        Mistake{"missing_name", "name: criteo-dlrm\n", "",
                "job.yaml:1:1: the key `name` is missing: it must be 1 to 100 letters, digits, "
                "`-`, `_` and `.`, "
                "beginning with a letter or digit; it names the run's directory\n"},
        Mistake{"bad_name", "criteo-dlrm", "../up",
                "job.yaml:1:7: `name` must be 1 to 100 letters, digits, `-`, `_` and `.`, "
                "beginning with a letter or "
                "digit; it names the run's directory\n"},
        Mistake{"missing_rate", "{learning_rate: 0.02}", "{epsilon: 1}",
                "job.yaml:15:3: the key `optimizer.adagrad.learning_rate` is missing: it must be "
                "above 0; 0.01 to 0.1 is "
                "usual\n"},
        Mistake{"zero_rate", "0.02", "0",
                "job.yaml:15:28: `optimizer.adagrad.learning_rate` must be above 0; 0.01 to 0.1 is "
                "usual\n"},
        Mistake{"missing_model_key", "    embedding_dim: 16\n", "",
                "job.yaml:9:3: the key `model.dlrm.embedding_dim` is missing: it must be from 1 to "
                "65536; 16 is usual\n"},
        Mistake{"dim_differs", "[32, 16]", "[32, 8]",
                "job.yaml:12:5: `model.dlrm.bottom_mlp` ends in 8, but embedding_dim is 16; make "
                "the two equal: dense "
                "features and embeddings are multiplied with each other\n"},
        Mistake{"top_end", "[32, 1]", "[32]",
                "job.yaml:13:5: `model.dlrm.top_mlp` ends in 32; end it in 1, the click's logit\n"},
        Mistake{"zero_layer", "[32, 1]", "[0, 1]",
                "job.yaml:13:15: `model.dlrm.top_mlp[0]` must be from 1 to 65536, not 0\n"},
        Mistake{"format", "criteo_tsv", "tsv",
                "job.yaml:5:13: `data.train.format` must be " + FormatNames(kAllFormats, "or") +
                    ", not `tsv`; docs/reference/readers.md describes them\n"},
        Mistake{"libsvm_without_features", "format: criteo_tsv", "format: libsvm",
                "job.yaml:4:3: the key `data.train.features` is missing: it must be above every id "
                "of the files; a file with ids from 1 to 123 has features: 124\n"},
        Mistake{"libsvm_key", "    format", "    features: 7\n    format",
                "job.yaml:5:15: `data.train.features` is for format " +
                    FormatNames(kLibsvmBit | kLibffmBit) + ", not for criteo_tsv; remove it\n"},
        Mistake{
            "libffm_without_fields", "format: criteo_tsv", "features: 5\n    format: libffm",
            "job.yaml:4:3: the key `data.train.fields` is missing: it must be above every field "
            "of the files, at most 10000; a file with fields from 0 to 38 has fields: 39\n"},
        Mistake{
            "libffm_fields", "format: criteo_tsv",
            "fields: 10001\n    features: 5\n    format: libffm",
            "job.yaml:5:13: `data.train.fields` must be above every field of the files, at most "
            "10000; a file with fields from 0 to 38 has fields: 39\n"},
        Mistake{
            "csv_key", "    format", "    trim: true\n    format",
            "job.yaml:5:11: `data.train.trim` is for format csv, not for criteo_tsv; remove it\n"},
        Mistake{
            "missing_file", "CMakeLists.txt", "CMakeList.txt",
            "job.yaml:6:13: there is no file ./tests/coordinator/cli/CMakeList.txt; did you mean "
            "`CMakeLists.txt`?\n"},
        Mistake{"missing_folder", "tests/coordinator/cli/CMakeLists.txt", "nowhere/x/y.tsv",
                "job.yaml:6:13: there is no file ./nowhere/x/y.tsv; the path exists only up to .; "
                "paths are relative to "
                "the job file\n"},
        Mistake{"glob_without_match", "CMakeLists.txt", "zzz*qqq*",
                "job.yaml:6:13: no file matches ./tests/coordinator/cli/zzz*qqq*; the folder "
                "./tests/coordinator/cli is "
                "there: check the name\n"},
        Mistake{"folder", "/CMakeLists.txt", "",
                "job.yaml:6:13: ./tests/coordinator/cli is a folder; write "
                "./tests/coordinator/cli/*\n"},
        Mistake{
            "no_files", "[tests/coordinator/cli/CMakeLists.txt]", "[]",
            "job.yaml:6:5: `data.train.files` names no files; write a list of paths or globs\n"},
        Mistake{
            "visitation", "    shuffle", "    visitation: once\n    shuffle",
            "job.yaml:7:17: `data.train.visitation` must be exactly_once or none, not `once`\n"},
        Mistake{"visitation_of_eval", "model:\n",
                "  eval: {format: criteo_tsv, files: [tests/coordinator/cli/CMakeLists.txt], "
                "visitation: none}\nmodel:\n",
                "job.yaml:8:89: `data.eval.visitation` is for data.train: evaluation and "
                "prediction use each record once; remove it\n"},
        Mistake{"shuffle_of_eval", "model:\n",
                "  eval: {format: criteo_tsv, files: [tests/coordinator/cli/CMakeLists.txt], "
                "shuffle: {records: 10}}\nmodel:\n",
                "job.yaml:8:77: `data.eval.shuffle` is for data.train: the order of records "
                "changes no evaluation, and predictions keep that of the files; remove it\n"},
        Mistake{"zero_epochs", "epochs: 1", "epochs: 0",
                "job.yaml:16:20: `training.epochs` must be at least 1; leave it out for 1\n"},
        Mistake{"no_micro_batches", "epochs: 1", "micro_batches: 0",
                "job.yaml:16:27: `training.micro_batches` must be from 1 to the batch size, 512, "
                "not 0; 1 computes a batch as a whole\n"},
        Mistake{"micro_batches", "epochs: 1, batch_size: 512", "batch_size: 6, micro_batches: 7",
                "job.yaml:16:42: `training.micro_batches` must be from 1 to the batch size, 6, not "
                "7; 1 computes a batch as a whole\n"},
        Mistake{"negative_norm", "epochs: 1", "clip_by_global_norm: -1",
                "job.yaml:16:33: `training.clip_by_global_norm` must not be negative, not -1; 0 "
                "leaves gradients as they are\n"},
        Mistake{
            "weight_decay", "epochs: 1", "weight_decay: -0.5, l2: -1",
            "job.yaml:16:26: `training.weight_decay` must not be negative, not -0.5; 0 leaves "
            "gradients as they are\njob.yaml:16:36: `training.l2` must not be negative, not -1; 0 "
            "leaves gradients as they are\n"},
        Mistake{"steps", "auto", "some",
                "job.yaml:16:60: `training.steps_per_function` must be auto or from 1 to 10000, "
                "not `some`\n"},
        Mistake{"octal_steps", "auto", "010",
                "job.yaml:16:60: `training.steps_per_function` must be auto or from 1 to 10000, "
                "not `010`\n"},
        Mistake{"quoted_steps", "auto", "\"5\"",
                "job.yaml:16:60: `training.steps_per_function` must be auto or a whole number, not "
                "the text \"5\"; write it without quotes\n"},
        Mistake{"steps_with_a_space", "auto", "' 3'",
                "job.yaml:16:60: `training.steps_per_function` must be auto or from 1 to 10000, "
                "not ` 3`\n"},
        Mistake{"octal_warmup", "epochs: 1", "warmup_steps: 010",
                "job.yaml:16:26: `training.warmup_steps` must be auto or a whole number up to "
                "4294967295, not `010`; 0 begins with the whole learning rate\n"},
        Mistake{"quoted_warmup", "epochs: 1", "warmup_steps: '5'",
                "job.yaml:16:26: `training.warmup_steps` must be auto or a whole number, not the "
                "text \"5\"; write it without quotes\n"},
        Mistake{"no_gap", "epochs: 1", "max_gap: 0",
                "job.yaml:16:21: `training.max_gap` must be above 0 and at most 1, not 0; 0.01 "
                "keeps the gaps between functions under 1%\n"},
        Mistake{"gap_above_everything", "epochs: 1", "max_gap: 1.5",
                "job.yaml:16:21: `training.max_gap` must be above 0 and at most 1, not 1.5; 0.01 "
                "keeps the gaps between functions under 1%\n"},
        Mistake{"gap_without_choice", "steps_per_function: auto",
                "steps_per_function: 10, max_gap: 0.1",
                "job.yaml:16:73: `training.max_gap` is for steps_per_function: auto, and "
                "training.steps_per_function is 10; remove one of them\n"},
        Mistake{
            "no_model",
            "dlrm:\n    embedding_dim: 16\n    hash_buckets: 1000\n    bottom_mlp: [32, 16]\n    "
            "top_mlp: [32, 1]\n",
            "{}\n",
            "job.yaml:8:1: `model` names no model; write for example model: {dlrm: {...}}; "
            "docs/job_file.md lists its "
            "keys\n"}),
    [](const auto& info) { return info.param.name; });

class CsvMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(CsvMistakeTest, IsNamedWithPlaceAndRemedy) {
  EXPECT_EQ(ProblemsOf(With(GoodCsvJob(), GetParam().from, GetParam().to)), GetParam().problems);
}

INSTANTIATE_TEST_SUITE_P(
    Values, CsvMistakeTest,
    ::testing::Values(
        Mistake{"keep_too_large", "[0, 1]", "[0, 10]",
                "job.yaml:6:37: `data.train.records.keep[1]` is 10, but remainders of 10 are 0 to "
                "9; raise `modulo` or "
                "lower it\n"},
        Mistake{"keep_twice", "[0, 1]", "[1, 1]",
                "job.yaml:6:37: `data.train.records.keep[1]` is 1 a second time; remove it\n"},
        Mistake{"zero_modulo", "modulo: 10", "modulo: 0",
                "job.yaml:6:23: `data.train.records.modulo` must be at least 1; write {modulo: 10, "
                "keep: [9]}\n"},
        Mistake{"kind", "kind: number", "kind: real",
                "job.yaml:10:30: `data.train.columns[2].kind` must be number, id, hash, label, "
                "class, vocabulary, bucket or cross, not `real`\n"},
        Mistake{"column_twice", "{name: rating", "{name: item",
                "job.yaml:10:16: `data.train.columns[2].name` is `item`, as is an earlier "
                "column's; give each column a "
                "name of its own\n"
                "job.yaml:13:68: `model.matrix_factorization.item_column` is `item`, which "
                "data.train reads as number; give "
                "that column kind: id\n"
                "job.yaml:13:89: `model.matrix_factorization.rating_column` is `rating`, which is "
                "no column of data.train; "
                "add it to data.train.columns\n"},
        Mistake{"unknown_column", "user_column: user", "user_column: usr",
                "job.yaml:13:49: `model.matrix_factorization.user_column` is `usr`, which is no "
                "column of data.train; did "
                "you mean `user`?\n"},
        Mistake{"ids_out_of_range", "users: 10", "users: 5",
                "job.yaml:13:48: `model.matrix_factorization.user_column` is `user` with ids up to "
                "9 in data.train, but the "
                "model's are below 5; make the two equal\n"},
        Mistake{"label_without_positive", "kind: number}",
                "kind: number}\n      - {name: y, kind: label}",
                "job.yaml:11:9: the key `data.train.columns[3].positive` is missing: it must name "
                "the texts that mean 1; "
                "write for example [\"1\"]\n"},
        Mistake{"no_header", "    columns", "    header: false\n    columns",
                "job.yaml:9:9: the key `data.train.columns[0].index` is missing: it must be given "
                "where there is no "
                "header; fields count from 0\n"
                "job.yaml:10:9: the key `data.train.columns[1].index` is missing: it must be given "
                "where there is no "
                "header; fields count from 0\n"
                "job.yaml:11:9: the key `data.train.columns[2].index` is missing: it must be given "
                "where there is no "
                "header; fields count from 0\n"},
        Mistake{"delimiter", "    columns", "    delimiter: \",,\"\n    columns",
                "job.yaml:7:16: `data.train.delimiter` must be one character; write for example "
                "\",\" or \"\\t\"\n"},
        Mistake{
            "format_of_model", "format: csv", "format: criteo_tsv",
            "job.yaml:4:13: `data.train.format` is criteo_tsv, but model matrix_factorization "
            "reads csv; write format: "
            "csv\n"
            "job.yaml:7:5: `data.train.columns` is for format csv, jsonl, tfrecord and npy, not "
            "for criteo_tsv; remove it\n"}),
    [](const auto& info) { return info.param.name; });

TEST(JobProblemsTest, OfAModelOfFeatures) {
  const std::string model =
      "wide_deep:\n"  // 9
      "    features: [{column: dense, size: 13}, {column: ids, kind: id, size: 26, rows: 10}]\n"
      "    label_column: label\n"  // 11
      "    hidden: [32, 16]\n";    // 12
  std::string job =
      With(GoodJob(), "dlrm:\n    embedding_dim: 16\n    hash_buckets: 1000\n", model);
  job = With(job, "    bottom_mlp: [32, 16]\n    top_mlp: [32, 1]\n", "");
  EXPECT_EQ(ProblemsOf(job), "");
  EXPECT_EQ(ProblemsOf(With(job, "rows: 10", "mean: 3")),
            "job.yaml:10:43: the key `model.wide_deep.features[1].rows` is missing: it must be "
            "from 1 to 1000000000000; ids are below it\n"
            "job.yaml:10:83: `model.wide_deep.features[1].mean` is for numbers; remove it\n");
  EXPECT_EQ(ProblemsOf(With(job, "    hidden: [32, 16]", "    cross_layers: 2")),
            "job.yaml:9:3: the key `model.wide_deep.hidden` is missing: it names no layers; write "
            "a list of widths such as [64, 32]\n"
            "job.yaml:12:19: `model.wide_deep.cross_layers` is no key of model wide_deep; remove "
            "it\n");
}

TEST(JobProblemsTest, GoodJobsHaveNone) {
  EXPECT_EQ(ProblemsOf(GoodJob()), "");
  EXPECT_EQ(ProblemsOf(GoodCsvJob()), "");
}

TEST(JobProblemsTest, AllAreListedAtOnceInOrder) {
  std::string text =
      With(With(With(GoodJob(), "seed: 1", "sead: 1"), "[32, 16]", "x"), "epochs: 1", "epochs: a");
  EXPECT_EQ(ProblemsOf(text),
            "job.yaml:2:1: there is no key `sead` in a job; did you mean `seed`?\n"
            "job.yaml:12:17: `model.dlrm.bottom_mlp` must be a list, not `x`; write [x]\n"
            "job.yaml:16:20: `training.epochs` must be a whole number, not `a`\n");
}

TEST(JobProblemsTest, WhatIsNotYaml) {
  EXPECT_EQ(ProblemsOf("name: [1, 2\n"),
            "job.yaml:2:1: this is not YAML: end of sequence flow not found; check quotes and "
            "indentation\n");
  EXPECT_EQ(ProblemsOf("files: [${X}/a]\n").substr(0, 36), "job.yaml:1:10: this is not YAML: end");
  EXPECT_EQ(ProblemsOf("- a\n"),
            "job.yaml:1:1: a job must be a map of keys, not a list; its keys are: name, seed, "
            "data, model, optimizer, "
            "training, job_dir, checkpoint, recovery, warm_start, evaluation, early_stopping, "
            "parameters\n");
  EXPECT_EQ(ProblemsOf("").substr(0, 57),
            "job.yaml:1:1: a job must be a map of keys, not nothing; i");
}

TEST(JobProblemsTest, AliasesThatGrowOrTurnBackAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 1; j < 10; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_NE(ProblemsOf(bomb).find("more than 100000 values"), std::string::npos);
  EXPECT_NE(ProblemsOf("name: &a [*a]\n").find("nested more than 32 deep"), std::string::npos);
}

// yaml-cpp finds empty documents in these without end.
TEST(JobProblemsTest, TextBehindTheDocumentEndsTheParser) {
  for (const auto& [text, place] :
       {std::pair("- a\nb: 1\n", "job.yaml:2:1"), std::pair("\"a\", \"b\"", "job.yaml:1:4")}) {
    ProblemList problems;
    ParseConfig(text, "job.yaml", /*whole=*/false, &problems);
    EXPECT_EQ(problems.ToString(),
              absl::StrCat(place,
                           ": this is not YAML: what stands here belongs to no value; check "
                           "quotes, brackets and indentation\n"));
  }
}

// The other records of a batch are what a record is told from.
TEST(TwoTowerJob, ABatchOfOneRecordTeachesNothing) {
  const auto problems = [](const std::string& training, const std::string& negatives = "") {
    const std::string job =
        "name: towers\n"
        "data: {train: {format: csv, files: [tests/coordinator/cli/CMakeLists.txt], columns: "
        "[{name: u, kind: id}, {name: i, kind: id}, {name: y, kind: number}]}}\n"
        "model:\n"
        "  two_tower: {user: [{column: u, kind: id, rows: 9}], item: [{column: i, kind: id, rows: "
        "9}], hidden: [4], label_column: y" +
        negatives + "}\noptimizer: {sgd: {learning_rate: 0.1}}\n" + training;
    return ProblemsOf(job);
  };
  EXPECT_EQ(problems(""), "");
  EXPECT_EQ(problems("training: {batch_size: 2}"), "");
  EXPECT_THAT(
      problems("training: {batch_size: 1}"),
      ::testing::HasSubstr("job.yaml:6:24: `training.batch_size` is 1, which leaves a batch "
                           "of one record, and model two_tower takes the other records' "
                           "items for negatives"));
  EXPECT_EQ(problems("training: {batch_size: 1}", ", negatives: sampled"), "");
  EXPECT_EQ(problems("training: {batch_size: 8, micro_batches: 4}"), "");
  EXPECT_THAT(problems("training: {batch_size: 8, micro_batches: 5}"),
              ::testing::HasSubstr("`training.micro_batches` is 5, which leaves slices of one"));
}

}  // namespace
}  // namespace mu
