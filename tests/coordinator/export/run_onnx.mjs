// Runs models in ONNX Runtime: reads [{model, inputs: {NAME: {type, dims, data}}}] from the file that is
// named, prints one line a case: {outputs: {NAME: {type, dims, data}}} or {error}. Numbers are texts,
// so that 64-bit integers, infinities and NaN survive. The module is found from the working directory.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const ort = createRequire(`${process.cwd()}/`)("onnxruntime-node");

const ARRAYS = {
  float32: (data) => Float32Array.from(data, Number),
  int32: (data) => Int32Array.from(data, Number),
  int64: (data) => BigInt64Array.from(data, BigInt),
  uint8: (data) => Uint8Array.from(data, Number),
  bool: (data) => Uint8Array.from(data, Number),
};

async function run({ model, inputs }) {
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 3 });
  const feeds = {};
  for (const [name, { type, dims, data }] of Object.entries(inputs)) {
    feeds[name] = new ort.Tensor(type, ARRAYS[type](data), dims);
  }
  const outputs = {};
  for (const [name, tensor] of Object.entries(await session.run(feeds))) {
    outputs[name] = { type: tensor.type, dims: tensor.dims, data: Array.from(tensor.data, String) };
  }
  return { outputs };
}

for (const each of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  let result;
  try {
    result = await run(each);
  } catch (error) {
    result = { error: String(error) };
  }
  console.log(JSON.stringify(result));
}
