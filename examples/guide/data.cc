// Data sets: docs/program.md.
#include <algorithm>
#include <cstdio>

#include "examples/guide/guide.h"

namespace guide {

// [list-column]
mu::DatasetSpec VisitsWithTags(const std::string& file) {
  return Visits(file).IdList("tags", 12);  // ids below 12, "|" between them
}

absl::StatusOr<mu::Function> DefineTagged(mu::Coordinator& c, const mu::Dataset& tagged) {
  MU_ASSIGN_OR_RETURN(mu::EmbeddingTable tags,
                      c.CreateEmbeddingTable({.name = "tags", .rows = 12, .dim = 1}));
  return c.DefineFunction("tagged", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(tagged);
    auto bags = mu::EmbeddingBag(tags, batch["tags.values"], batch["tags.splits"],
                                 mu::Combiner::kMean);  // [batch, 1]
    auto logits = mu::Reshape(bags, {-1});
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(logits, batch["clicked"]));
    f.Minimize(loss);
    f.Return("loss", loss);
  });
}
// [/list-column]

// [criteo]
// Columns: label float32 [batch], dense float32 [batch, 13], ids int64 [batch, 26].
absl::StatusOr<mu::Dataset> Clicks(mu::Coordinator& c, const std::string& files) {
  return c.CreateDataset(
      mu::CriteoTsv({files}, /*hash_buckets=*/100'000).Batch(512).Shuffle(100'000).Epochs(1));
}
// [/criteo]

// [epochs]
absl::Status CountRecords(mu::Coordinator& c, const std::string& file) {
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file).Epochs(2)));
  MU_ASSIGN_OR_RETURN(mu::Function count, c.DefineFunction("count", [&](mu::FunctionBuilder& f) {
    f.Return("records", mu::Count(f.NextBatch(data)["user"]));
  }));
  MU_ASSIGN_OR_RETURN(const uint64_t batches, c.BatchesInEpoch(data));
  // More steps than two epochs have: the data ends, and so does the call, without an error.
  const auto steps = static_cast<uint32_t>(3 * batches);
  MU_ASSIGN_OR_RETURN(const mu::FunctionResult all, c.Schedule(count, {.steps = steps}).Fetch());
  std::printf("%zu of %u steps, %llu records\n", all.steps(), steps,
              static_cast<unsigned long long>(all.samples()));
  // Begin again.
  MU_RETURN_IF_ERROR(c.Join());
  MU_RETURN_IF_ERROR(c.StartEpoch(data, 0));
  MU_ASSIGN_OR_RETURN(const mu::FunctionResult first, c.Schedule(count).Fetch());
  MU_ASSIGN_OR_RETURN(const double records, first.Mean("records"));
  std::printf("the first batch has %.0f records\n", records);
  return absl::OkStatus();
}
// [/epochs]

// [visitation]
// Every worker reads all records by itself; returns how many records were read in all.
absl::StatusOr<uint64_t> EveryWorkerByItself(mu::Coordinator& c, const std::string& file) {
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file).Shuffle(1000).PerWorker()));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, data));
  MU_ASSIGN_OR_RETURN(mu::TrainResult result, mu::Train(c, step, data, {.epochs = 2}));
  return result.samples;
}
// [/visitation]

}  // namespace guide
