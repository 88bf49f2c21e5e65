// SPDX-License-Identifier: MIT
// node run.mjs FOLDER: the compiler's worker without a browser. Reads messages to the worker from standard input, one in a line, and
// writes those from it to standard output; of a file, its size. FOLDER is what build.mjs has written.
import {webcrypto} from "node:crypto";
import {readFileSync} from "node:fs";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";
import {gunzipSync} from "node:zlib";

globalThis.crypto ??= webcrypto; // node 18 lacks it
const folder = pathToFileURL(`${process.argv[2]}/`), {execute, Pipeline} = await import(new URL("pipeline.js", folder));
const headers = {"content-type": "application/wasm"};
const unpacked = async url => new Response(gunzipSync(readFileSync(new URL(`${url}.packed`))), {headers});
const pipeline = await Pipeline.start(folder, unpacked, () => import("binaryen"));
const post = message => console.log(JSON.stringify(message, (key, value) => key === "bytes" ? Object.keys(value).length : value));
for await (const line of createInterface({input: process.stdin}))
    await pipeline.run(JSON.parse(line).run, post, execute);
