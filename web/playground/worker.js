// SPDX-License-Identifier: MIT
// The compiler's worker: {run: {text, name, args}} compiles and runs a program. It tells {progress}, {diagnostics}, {out}, {err}, {file}
// and {end}. The page stops it by terminate(). A page makes it when somebody edits: it fetches the compiler then, and compiles an empty
// program, since the browser compiles the compiler when that is used first.
import {Pipeline} from "./pipeline.js";

async function load(name) {
    const answer = await fetch(new URL(name, import.meta.url));
    if (!answer.ok)
        throw new Error(`${name}: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
}

async function start() {
    const {runLLVM} = await import("./clang/bundle.js");
    const fetchProgress = ({doneLength, totalLength}) => postMessage({progress: {what: "fetch", done: doneLength, total: totalLength}});
    await runLLVM(null, {}, {fetchProgress});
    const pipeline = new Pipeline(load, runLLVM);
    await pipeline.start();
    return pipeline;
}

const ready = start();
let asked = false;
ready.then(pipeline => asked || pipeline.compile("int main() {}\n", "empty.cu")).catch(() => {});

onmessage = async ({data: {run}}) => {
    asked = true;
    try {
        await (await ready).run(run, message => postMessage(message));
    } catch (error) {
        postMessage({end: {status: `the compiler failed: ${error.message ?? error}`, times: {}}});
    }
};
