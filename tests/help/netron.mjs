// Open IR files with the module of Netron that reads them: node netron.mjs FOLDER FILE… Writes their graphs as JSON.
//
// FOLDER is that of the Python package netron, which holds the modules of its page.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder, ...files] = process.argv;
const load = (name) => import(pathToFileURL(path.join(folder, name)).href);
const { ModelFactory } = await load("openvino.js");
const { TextReader } = await load("xml.js");

class Stream {
  constructor(file) {
    this.data = new Uint8Array(fs.readFileSync(file));
    this.length = this.data.length;
    this.position = 0;
  }

  peek(length = this.length - this.position) {
    return this.data.subarray(this.position, this.position + length);
  }

  read(length) {
    const data = this.peek(length);
    this.position += data.length;
    return data;
  }

  seek(position) {
    this.position = position;
  }

  skip(length) {
    this.position += length;
  }
}

const known = JSON.parse(fs.readFileSync(path.join(folder, "openvino-metadata.json"), "utf8"));
const types = new Map(known.map((type) => [type.name, type]));
const metadata = {
  type: (name) => types.get(name) ?? { name },
  attribute: (type, name) => types.get(type)?.attributes?.find((attribute) => attribute.name === name) ?? null,
};

const text = (value) => value.type.toString();
const values = (parameters) => parameters.flatMap((parameter) => parameter.value);
const graphs = {};
for (const file of files) {
  const model = await new ModelFactory().open({
    identifier: path.basename(file),
    type: "openvino.xml",
    fetch: async (name) => ({ stream: new Stream(path.join(path.dirname(file), name)) }),
    read: async () => TextReader.open(new Stream(file)).read(),
    metadata: async () => metadata,
  });
  const [graph] = model.modules;
  graphs[path.basename(file)] = {
    name: graph.name,
    inputs: graph.inputs.map((input) => [input.name, ...input.value.map(text)]),
    nodes: graph.nodes.map((node) => ({
      name: node.name,
      type: node.type.name,
      attributes: Object.fromEntries(node.attributes.map(({ name, value }) => [name, String(value)])),
      inputs: values(node.inputs).map((value) => (value.initializer ? value.initializer.type.toString() : value.name)),
      outputs: values(node.outputs).map(text),
    })),
  };
}
console.log(JSON.stringify(graphs));
