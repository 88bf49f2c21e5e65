// SPDX-License-Identifier: MIT
// node run.mjs FOLDER: the playground's compiler without a browser. Reads messages to the worker from standard input, one in a line, and
// writes those from it to standard output; of a file, its size. FOLDER is what build.mjs has written.
import {readFile} from "node:fs/promises";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const {Pipeline} = await import(new URL("pipeline.js", folder)), {runLLVM} = await import(new URL("clang/bundle.js", folder));
const pipeline = new Pipeline(name => readFile(new URL(name, folder)), runLLVM);
await runLLVM(null, {}, {fetchProgress() {}});
await pipeline.start();
const post = message => console.log(JSON.stringify(message, (key, value) => key === "bytes" ? Object.keys(value).length : value));
for await (const line of createInterface({input: process.stdin}))
    await pipeline.run(JSON.parse(line).run, post);
