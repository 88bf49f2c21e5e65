// SPDX-License-Identifier: MIT
// The compiler's worker: {run: {text, name, args}} compiles and runs a program. It tells {progress}, {diagnostics}, {out}, {err}, {file}
// and {end}. The page stops it by terminate().
import {Pipeline} from "./pipeline.js";

let ready;

async function start() {
    const {runLLVM} = await import("./clang/bundle.js");
    const load = async name => {
        const answer = await fetch(new URL(name, import.meta.url));
        if (!answer.ok)
            throw new Error(`${name}: ${answer.status}`);
        return new Uint8Array(await answer.arrayBuffer());
    };
    const fetchProgress = ({doneLength, totalLength}) => postMessage({progress: {what: "fetch", done: doneLength, total: totalLength}});
    await runLLVM(null, {}, {fetchProgress});
    const pipeline = new Pipeline(load, runLLVM);
    await pipeline.start();
    return pipeline;
}

onmessage = async ({data: {run}}) => {
    try {
        await (await (ready ??= start())).run(run, postMessage);
    } catch (error) {
        postMessage({end: {status: `the compiler failed: ${error.message ?? error}`, times: {}}});
    }
};
