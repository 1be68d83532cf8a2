// The key `product` of models of many classes: what does not go with it has its place and remedy.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/cli/job_text.h"

namespace mu {
namespace {

using testing::GoodJob;
using testing::ProblemsOf;
using testing::With;

// A job of many classes, with `product` in line 14.
std::string JobWith(const std::string& product) {
  const std::string model =
      "mlp:\n"  // 9
      "    features: [{column: dense, size: 13}, {column: ids, kind: id, size: 26, rows: 10}]\n"
      "    label_column: label\n"  // 11
      "    hidden: [32]\n"         // 12
      "    classes: 100000\n";     // 13
  const std::string job =
      With(GoodJob(), "dlrm:\n    embedding_dim: 16\n    hash_buckets: 1000\n", model);
  return With(job, "    bottom_mlp: [32, 16]\n    top_mlp: [32, 1]\n",
              absl::StrCat("    product: ", product, "\n"));
}

TEST(JobProducts, AreOneOfThree) {
  for (const std::string product : {"auto", "servers", "worker"})
    EXPECT_EQ(ProblemsOf(JobWith(product)), "");
  EXPECT_EQ(ProblemsOf(JobWith("server")),
            "job.yaml:14:14: `model.mlp.product` must be auto, servers or worker, not `server`; "
            "auto is where fewer bytes move\n");
}

TEST(JobProducts, OfServersGoWithNothingThatChangesGradients) {
  for (const std::string key : {"micro_batches", "clip_by_value", "clip_by_norm",
                                "clip_by_global_norm", "l1", "l2", "weight_decay"}) {
    const auto job = [&](const std::string& product, int value) {
      return With(JobWith(product), "epochs: 1", absl::StrCat(key, ": ", value));
    };
    const std::string refused = absl::StrCat(
        "job.yaml:14:14: `model.mlp.product` is servers, which does not go with training.", key,
        "; write product: auto, which reads the weights then, or remove training.", key, "\n");
    EXPECT_EQ(ProblemsOf(job("servers", 2)), refused);
    EXPECT_EQ(ProblemsOf(job("auto", 2)), "");
    EXPECT_EQ(ProblemsOf(job("worker", 2)), "");
    EXPECT_EQ(ProblemsOf(job("servers", key == "micro_batches" ? 1 : 0)), "");
  }
}

TEST(JobProducts, NeedClassesAndNumbers) {
  EXPECT_EQ(ProblemsOf(With(JobWith("auto"), "    classes: 100000\n", "")),
            "job.yaml:13:14: `model.mlp.product` is for labels of many classes; write `classes`, "
            "or remove it\n");
  const std::string job =
      With(With(JobWith("auto"), "mlp:", "logistic_regression:"), "    hidden: [32]\n", "");
  EXPECT_EQ(ProblemsOf(job), "");
  EXPECT_EQ(ProblemsOf(With(job, "{column: dense, size: 13}, ", "")),
            "job.yaml:13:14: `model.logistic_regression.product` is of the features that are "
            "numbers, and there are none; remove it: of ids only the rows of a batch travel\n");
  EXPECT_EQ(ProblemsOf(With(With(JobWith("auto"), "mlp:", "deepfm:"), "    classes: 100000\n", "")),
            "job.yaml:13:14: `model.deepfm.product` is no key of model deepfm; remove it\n");
}

}  // namespace
}  // namespace mu
