#include "coordinator/cli/data_keys.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mu {
namespace {

constexpr FormatInfo kFormats[] = {
    {"criteo_tsv", kCriteoTsvBit,
     "A line of Criteo's click logs: a label, 13 integers and 26 hexadecimal categoricals, "
     "separated "
     "by tabs. Any field except the label may be empty",
     "`label` float32 [batch]; `dense` float32 [batch, 13], log(1 + max(0, x)), missing: 0; `ids` "
     "int64 [batch, 26], hashed to the model's buckets, per field"},
    {"csv", kCsvBit,
     "A line of delimited text (RFC 4180); a quoted field may hold line ends. Blank lines are no "
     "records",
     "those of `columns`"},
    {"libsvm", kLibsvmBit,
     "A line `LABEL ID:VALUE ID:VALUE ...`, separated by spaces; the ids of a line grow, and what "
     "follows a `#` is a comment. Blank lines and lines of a comment alone are no records",
     "`label` float32 [batch]; the weighted list `features`"},
    {"libffm", kLibffmBit,
     "A line `LABEL FIELD:ID:VALUE FIELD:ID:VALUE ...`, separated by spaces, in any order; what "
     "follows a `#` is a comment. Blank lines and lines of a comment alone are no records",
     "`label` float32 [batch]; the weighted lists `field_0`, `field_1`, ..., one for each field"},
    {"jsonl", kJsonlBit,
     "A JSON object a line (RFC 8259). A column is a key of the object. A number is read as its "
     "text; `true` and `false` as these words, or as 1 and 0 by numbers and buckets",
     "those of `columns`"},
    {"tfrecord", kTfrecordBit,
     "A `tf.Example` message of a TFRecord file; both checksums are verified. A column is a "
     "feature "
     "of bytes, floats or int64; an int64 is read as its decimal text",
     "those of `columns`"},
    {"idx", kIdxBit,
     "An image of an IDX file (MNIST's), and the label at the same place of the file in `labels`. "
     "Elements of every type of IDX",
     "`image` float32 [batch, shape], times `scale`; with `labels` also `label` int64 [batch]"},
    {"npy", kNpyBit,
     "The elements at one index of the first axis of NumPy's `.npy` files, one file for each "
     "column. "
     "Any type of whole numbers, float16, float32, float64, bool; C order",
     "those of `columns`"},
};

constexpr ColumnKindInfo kKinds[] = {
    {"number", kNumberBit,
     "A decimal number up to 3.4e38; with `mean` and `stddev`: (number - mean) / stddev, computed "
     "in float64 and rounded to float32 once",
     "float32 [batch]; [batch, shape]; with `length` as a sequence", "`missing_value`"},
    {"id", kIdBit, "A whole number from 0", "int64", "`missing_id`, or else the record is bad"},
    {"hash", kHashBit, "The text, hashed to buckets", "int64", "a bucket of its own hash"},
    {"label", kLabelBit, "1 if the text is one of `positive`, else 0", "float32 [batch]", "0"},
    {"class", kClassBit, "The index of the text in `classes`; another text makes the record bad",
     "int64", "`missing_id`, or else the record is bad"},
    {"vocabulary", kVocabularyBit,
     "The line (from 0) of the text in the file `vocabulary`. Other texts are hashed to "
     "`oov_buckets` ids behind those; with 0 of these, they make the record bad",
     "int64", "`missing_id`, or else the first id behind the vocabulary"},
    {"bucket", kBucketBit,
     "How many of `boundaries` are not above the number: 0 to their number. They are compared as "
     "float64, with a float of `tfrecord` as float32",
     "int64", "`missing_id`, or else the number of boundaries + 1"},
    {"cross", kCrossBit,
     "The columns `of` (of one value each) together, hashed to buckets: of a `bucket` its bucket, "
     "of other kinds the text that the field holds. It counts as it is written: 0.5 and 0.50 "
     "differ. Of `true` and `false` of `jsonl` the text is as for the column's kind; of a float of "
     "`tfrecord` it is the shortest that gives the float again, such as 0.5, 2 or 1e+10",
     "int64 [batch]", "a missing field is a value of its own"},
};

constexpr SourceKeyInfo kSourceKeys[] = {
    {"header", kCsvBit, "the first line names the fields", "`true`"},
    {"delimiter", kCsvBit, "one character", "`\",\"`"},
    {"quote", kCsvBit, "one character, or `\"\"` for none", "`\"\\\"\"`"},
    {"missing", kCsvBit | kJsonlBit,
     "texts that mean a missing field, in addition to the empty text (and `null`)", "none"},
    {"trim", kCsvBit, "spaces around fields are removed", "`false`"},
    {"skip_lines", kCsvBit,
     "lines at the beginning of each file that are no records, before the header", "0"},
    {"columns", kFieldFormats | kNpyBit, "list of columns, see below", "required"},
    {"features", kLibsvmBit | kLibffmBit,
     "ids are from 0 and below it; a larger id makes the record bad", "required"},
    {"fields", kLibffmBit, "fields are from 0 and below it; a larger field makes the record bad",
     "required"},
    {"positive", kLibsvmBit | kLibffmBit,
     "list of the label's texts that mean 1, such as `[\"+1\"]`; others mean 0. Where these are "
     "numbers, a label that is none makes the record bad",
     "the label is the number that stands there"},
    {"labels", kIdxBit,
     "list of paths and globs: the n-th file holds the labels of the n-th of `files`",
     "no column `label` (for `predict`)"},
    {"scale", kIdxBit, "the elements of images are multiplied by it", "1/255"},
    {"shape", kIdxBit, "of an image; the file may group the same number of elements otherwise",
     "`[28, 28]`"},
};

constexpr ColumnKeyInfo kColumnKeys[] = {
    {"name", kFieldFormats | kNpyBit, kAllKinds,
     "the name by which the model finds the column. No other column may take it, or have a name "
     "that a list or a sequence takes (see below)",
     "required"},
    {"kind", kFieldFormats | kNpyBit, kAllKinds, "see below; `npy` has `number` and `id`",
     "required"},
    {"field", kFieldFormats, kAllKinds & ~unsigned{kCrossBit},
     "the name in the header, the key of the object, the feature", "`name`"},
    {"index", kCsvBit, kAllKinds & ~unsigned{kCrossBit},
     "the column's place in the line, from 0, instead of `field`", "required without a header"},
    {"buckets", kFieldFormats | kNpyBit, kIdBit | kHashBit | kCrossBit,
     "`hash`, `cross`: the number of buckets; `id`: the bound of ids, a larger id makes the record "
     "bad",
     "`hash`, `cross`: the model's number of rows, or 100000; `id`: the model's number of rows, or "
     "no bound"},
    {"seed", kFieldFormats, kHashBit | kCrossBit,
     "of the hash; columns of one seed and number of buckets share ids", "the column's name"},
    {"positive", kFieldFormats, kLabelBit, "the texts that mean 1", "required"},
    {"classes", kFieldFormats, kClassBit, "the texts, in the order of their indices", "required"},
    {"vocabulary", kFieldFormats, kVocabularyBit,
     "path of a file with one text a line, also .gz or .zst (`coordinator make-vocab` writes it, "
     "compressed as its name says)",
     "required"},
    {"oov_buckets", kFieldFormats, kVocabularyBit, "ids for texts that are not in the vocabulary",
     "1"},
    {"boundaries", kFieldFormats, kBucketBit, "numbers that grow", "required"},
    {"of", kFieldFormats, kCrossBit, "names of columns of this list, of one value each",
     "required"},
    {"mean", kFieldFormats, kNumberBit,
     "subtracted from the number (`coordinator stats` computes it)", "0"},
    {"stddev", kFieldFormats, kNumberBit, "the number is then divided by it", "1"},
    {"missing_value", kFieldFormats, kNumberBit,
     "the value of a missing field; it is not standardised, so with `mean` 0 stands for the mean",
     "0"},
    {"missing_id", kFieldFormats, kListKinds & ~unsigned{kHashBit}, "the id of a missing field",
     "see the kind"},
    {"required", kFieldFormats, kAllKinds & ~unsigned{kCrossBit},
     "a missing field makes the record bad", "`false`"},
    {"separator", kCsvBit, kSeveralKinds,
     "the field has several values, with this character between them; an empty one is left out "
     "among ids, and is `missing_value` among numbers, where NAME.length counts it",
     "the field is one value"},
    {"list", kJsonlBit | kTfrecordBit, kSeveralKinds,
     "the field has several values (an array; all values of the feature); one that is `null`, "
     "empty or a text of `missing` is treated as an empty one of `separator`",
     "`false`"},
    {"weight_separator", kCsvBit, kListKinds,
     "each value of the list is VALUE, this character and a weight", "the values have no weights"},
    {"weight_field", kJsonlBit | kTfrecordBit, kListKinds,
     "the key or feature with as many numbers, the weights of the list",
     "the values have no weights"},
    {"length", kFieldFormats, kSeveralKinds,
     "the several values are a sequence: NAME [batch, length], filled up or cut, and NAME.length "
     "int64 [batch], how many values there are",
     "a list"},
    {"padding", kFieldFormats, kListKinds,
     "the id that fills a sequence up; one of numbers is filled up with `missing_value`", "0"},
    {"truncate", kFieldFormats, kSeveralKinds,
     "`end`: of more values than `length` the first stay; `begin`: the last", "`end`"},
    {"shape", kFieldFormats | kNpyBit, kNumberBit | kIdBit,
     "of a record's values: NAME float32 [batch, shape]; another number of values makes the record "
     "bad. `id`: `npy` only",
     "one value"},
    {"files", kNpyBit, kNumberBit | kIdBit,
     "list of paths and globs: the n-th file of each column belongs to the n-th of the others",
     "required"},
    {"scale", kNpyBit, kNumberBit, "the numbers are multiplied by it", "1"},
};

template <typename Info>
unsigned BitOf(absl::Span<const Info> infos, absl::string_view name) {
  for (const Info& info : infos) {
    if (info.name == name) return info.bit;
  }
  return 0;
}

template <typename Info>
std::string Names(absl::Span<const Info> infos, unsigned bits, absl::string_view last_word) {
  std::vector<std::string> names;
  for (const Info& info : infos) {
    if ((info.bit & bits) != 0) names.push_back(info.name);
  }
  if (names.empty()) return "";
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : absl::StrCat(absl::StrJoin(names, ", "), " ", last_word, " ", last);
}

}  // namespace

absl::Span<const FormatInfo> Formats() { return kFormats; }
absl::Span<const ColumnKindInfo> ColumnKinds() { return kKinds; }
absl::Span<const SourceKeyInfo> SourceKeys() { return kSourceKeys; }
absl::Span<const ColumnKeyInfo> ColumnKeys() { return kColumnKeys; }

unsigned FormatBitOf(absl::string_view name) { return BitOf(Formats(), name); }
unsigned KindBitOf(absl::string_view name) { return BitOf(ColumnKinds(), name); }

std::string FormatNames(unsigned formats, absl::string_view last_word) {
  return Names(Formats(), formats, last_word);
}
std::string KindNames(unsigned kinds, absl::string_view last_word) {
  return Names(ColumnKinds(), kinds, last_word);
}

}  // namespace mu
