// What the keys of the models in model_kinds.h mean.
#include "coordinator/frontend/model_doc_keys.h"

namespace mu {
namespace {

constexpr KeyText kImageColumn = {
    "image_column", "",
    "name of the column of images [height, width] or, with `channels`, [height, width, channels]"};
constexpr KeyText kClassLabel = {"label_column", "",
                                 "name of a column of classes; `predict` does not need it"};
constexpr KeyText kBinaryLabel = {"label_column", "",
                                  "name of a column of kind `label`, or `number` with values 0 and "
                                  "1; `predict` does not need it"};
constexpr KeyText kLength = {"length", "", "length of the sequence, as the column has it"};

ModelDoc CnnDoc() {
  ModelDoc doc{
      "cnn", "Class of an image: convolutions that halve it, then layers (LeCun et al., 1998)", {}};
  AddKeys(pb::CnnProto::descriptor(), "",
          {kImageColumn,
           {"height", "", "of the images"},
           {"width", "", "of the images"},
           {"channels", "1", "numbers of a pixel"},
           {"classes", "", "labels are below it"},
           kClassLabel,
           {"filters", "", "of each convolution, such as [16, 32]"},
           {"kernel", "3", "height and width of the filters"},
           {"hidden", "none", "widths of the layers before the logits"},
           {"dropout", "0", "before the logits, in training"}},
          &doc);
  return doc;
}

ModelDoc ResNetDoc() {
  ModelDoc doc{"resnet", "Class of a small image: residual blocks (He et al., 2016)", {}};
  AddKeys(
      pb::ResNetProto::descriptor(), "",
      {kImageColumn,
       {"height", "", "of the images"},
       {"width", "", "of the images"},
       {"channels", "1", "numbers of a pixel"},
       {"classes", "", "labels are below it"},
       kClassLabel,
       {"filters", "", "of each stage, such as [16, 32, 64]; each but the first halves the image"},
       {"blocks", "1", "of each stage; 3 is ResNet-20"}},
      &doc);
  return doc;
}

ModelDoc TwoTowerDoc() {
  ModelDoc doc{"two_tower",
               "Score of an item for a user: a vector of each, for retrieval (Yi et al., 2019)",
               {}};
  const auto* const message = pb::TwoTowerProto::descriptor();
  AddKeys(message, "", {{"user", "", "the user's columns, as `features` of other models"}}, &doc);
  AddFeatureKeys("user.", &doc);
  AddKeys(message, "", {{"item", "", "the item's columns, likewise"}}, &doc);
  AddKeys(
      message, "",
      {{"embedding_dim", "32", "length of a row of each table"},
       {"hidden", "", "widths of the layers of each tower; the last is that of its vector"},
       {"negatives", "in_batch",
        "what the item of a record is told from: `in_batch`: the items of the batch's other "
        "records; `sampled`: items that are drawn uniformly, of an item that is one `id`"},
       {"sampled", "100", "`sampled`: how many are drawn for each step"},
       {"frequency_column", "none",
        "`in_batch`: a column of numbers, how often the record's item is in the data. The loss "
        "is then corrected for items that are often in a batch"},
       {"temperature", "0.1", "scores are the products of the vectors divided by it"},
       {"label_column", "",
        "`data.eval`: 1 where the user chose the item. In `data.train` each record is a choice"}},
      &doc);
  return doc;
}

ModelDoc DinDoc() {
  ModelDoc doc{
      "din",
      "Probability that a label is 1: attention over what a user chose before (Zhou et al., "
      "2018)",
      {}};
  const auto* const message = pb::DinProto::descriptor();
  AddKeys(message, "", {{"features", "none", "other columns that it reads"}}, &doc);
  AddFeatureKeys("features.", &doc);
  AddKeys(
      message, "",
      {{"history_column", "", "name of a sequence of ids: the items before"},
       kLength,
       {"item_column", "", "name of a column of ids: the item in question"},
       {"items", "", "number of items; their ids are below it"},
       {"embedding_dim", "16", "length of the vectors"},
       {"attention_hidden", "", "widths of the layers that give an item of the history its weight"},
       {"hidden", "", "widths of the layers before the logit"},
       kBinaryLabel},
      &doc);
  return doc;
}

ModelDoc SasRecDoc() {
  ModelDoc doc{"sasrec",
               "Score of the next item of a sequence: a small transformer (Kang and McAuley, 2018)",
               {}};
  AddKeys(pb::SasRecProto::descriptor(), "",
          {{"sequence_column", "",
            "name of a sequence of ids in the order of time, padded with 0. In training each place "
            "predicts the next item; a score follows from the newest `length` - 1 items at most"},
           kLength,
           {"items", "", "number of items; their ids are from 1 and below it"},
           {"embedding_dim", "48", "length of the vectors"},
           {"blocks", "2", "of attention and layers"},
           {"heads", "1", "of the attention; divides `embedding_dim`"},
           {"dropout", "0.2", "in training"},
           {"item_column", "", "`data.eval`, `data.predict`: the item whose score is asked for"},
           {"label_column", "", "`data.eval`: 1 where it was the next one"}},
          &doc);
  return doc;
}

ModelDoc MmoeDoc() {
  ModelDoc doc{"mmoe",
               "Probabilities of several labels of a record: experts that the tasks share (Ma et "
               "al., 2018)",
               {}};
  const auto* const message = pb::MmoeProto::descriptor();
  AddKeys(message, "", {{"features", "", "the columns that it reads"}}, &doc);
  AddFeatureKeys("features.", &doc);
  AddKeys(message, "",
          {{"embedding_dim", "16", "length of the vectors"},
           {"experts", "4", "number of experts"},
           {"expert_hidden", "", "widths of the layers of each expert"},
           {"task_hidden", "none", "widths of each task's layers before its logit"},
           {"tasks", "", "list of tasks"}},
          &doc);
  AddKeys(pb::MmoeTaskProto::descriptor(), "tasks.",
          {{"name", "", "letters, digits and _; metrics begin with it: `income.auc`"},
           kBinaryLabel,
           {"weight", "1", "of its loss"}},
          &doc);
  return doc;
}

}  // namespace

std::vector<ModelDoc> ModelKindDocs() {
  return {CnnDoc(), ResNetDoc(), TwoTowerDoc(), DinDoc(), SasRecDoc(), MmoeDoc()};
}

}  // namespace mu
