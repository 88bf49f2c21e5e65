// SPDX-License-Identifier: MIT
// The editor of a page: CodeMirror, links that hold a text, texts that the browser keeps, and the worker that compiles and runs them.
// esbuild makes one script of this file and of CodeMirror; `playground` has what it exports. site.js calls open() when Edit is pressed.
//
// To the worker: {run: {text, name, args, check, exercise}} and {stop: why}. From it: {progress: {what, done, total}}, {out: text},
// {err: text}, {file: {name, bytes}}, {diagnostics: [{line, column, text, severity}]} and last {end: {status, times}}, with times in
// milliseconds.
import {defaultKeymap, history, historyKeymap, indentWithTab} from "@codemirror/commands";
import {cpp} from "@codemirror/lang-cpp";
import {bracketMatching, indentOnInput, indentUnit, syntaxHighlighting} from "@codemirror/language";
import {lintGutter, setDiagnostics} from "@codemirror/lint";
import {highlightSelectionMatches, search, searchKeymap} from "@codemirror/search";
import {EditorState, Transaction} from "@codemirror/state";
import {Decoration, EditorView, MatchDecorator, ViewPlugin, highlightActiveLine, keymap, lineNumbers} from "@codemirror/view";
import {classHighlighter} from "@lezer/highlight";

const WORKER = new URL("worker.js", document.currentScript.src); // the only place with its address
const SECONDS = 60, LINK = 1e6; // limits; the worker limits what is printed and drawn
const PREFIX = "#code=";

// ---- links: [text, options] as JSON, compressed, in base64 for addresses ----

async function through(bytes, stream, most) {
    const parts = [], reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
    for (let part, size = 0; !(part = await reader.read()).done; parts.push(part.value))
        if ((size += part.value.length) > most) {
            reader.cancel();
            throw new Error(`its text is longer than ${most} bytes`);
        }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function fragment(text, options) {
    const bytes = await through(JSON.stringify([text, options]), new CompressionStream("deflate-raw"), Infinity);
    const base64 = btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""));
    return PREFIX + base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(hash) {
    const base64 = hash.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt());
    const [text, options = ""] = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), LINK)));
    return {text: String(text), options: String(options)};
}

// ---- the editor ----

// What CUDA adds to C++
const cuda = new MatchDecorator({
    regexp: /\b(__(global|device|host|shared|constant|managed|launch_bounds)__|(thread|block)Idx|(block|grid)Dim|warpSize)\b|<<<|>>>/g,
    decoration: Decoration.mark({class: "tok-cuda"}),
});
const cudaWords = ViewPlugin.define(view => ({
    decorations: cuda.createDeco(view),
    update(update) { this.decorations = cuda.updateDeco(update, this.decorations); },
}), {decorations: plugin => plugin.decorations});

function extensions(run, changed) {
    const label = "text of the program. Control and Enter runs it. Escape, then Tab leaves the editor.";
    return [
        lineNumbers(), lintGutter(), history(), indentUnit.of("    "), indentOnInput(), bracketMatching(), highlightActiveLine(),
        highlightSelectionMatches(), search({top: true}), cpp(), cudaWords, syntaxHighlighting(classHighlighter), EditorView.lineWrapping,
        EditorView.contentAttributes.of({"aria-label": label, tabindex: "0"}),
        EditorView.updateListener.of(({docChanged, transactions}) =>
            docChanged && changed(transactions.some(one => one.annotation(Transaction.userEvent)))),
        keymap.of([{key: "Mod-Enter", run}, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
    ];
}

// Columns count bytes of UTF-8, as clang's do. In a kernel they are those of its translation: one beyond the line marks all of it.
function place(doc, {line, column, text, severity}) {
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines)), bytes = new TextEncoder().encode(at.text);
    const beyond = column - 1 > bytes.length, before = new TextDecoder().decode(bytes.subarray(0, Math.max(column, 1) - 1));
    const from = at.from + (beyond ? at.text.search(/\S|$/) : before.length);
    const [word = ""] = (beyond ? /.*/ : /^\w+|^./).exec(at.text.slice(from - at.from)) ?? [];
    return {from, to: from + word.length, message: text, severity: /^(error|warning)$/.test(severity) ? severity : "info"};
}

// Starts the service worker, and has it keep what this page has fetched already. What is fetched later goes through it.
async function offline() {
    const {serviceWorker} = navigator;
    if (!serviceWorker || location.protocol === "file:")
        return;
    const started = serviceWorker.controller || new Promise(resolve => serviceWorker.oncontrollerchange = resolve);
    const late = new Promise(resolve => setTimeout(resolve, 2000));
    try {
        const {active} = await serviceWorker.register(new URL("../offline.js", WORKER)).then(() => serviceWorker.ready);
        active.postMessage([location.pathname, ...performance.getEntriesByType("resource").map(one => one.name)]);
        await Promise.race([started, late]);
    } catch {} // a browser that keeps nothing
}

// ---- the panel ----

// Turns the panel of site.js into one that runs the text of an editor, which takes the place of the page's source. Returns what site.js
// uses. Nothing of the compiler is fetched before warm(), which a change by hand and a run call too.
export async function open({panel, form, stop, state, output, add, options}) {
    const {program, exercise} = panel.dataset, key = `cuda: ${program}`;
    const sources = [...document.querySelectorAll("pre:has(> [id^=L-])")]; // the lesson and the check
    const original = {text: sources.map(one => one.textContent).join(""), options};
    let worker, receive, waiting, running, note = "", fromLink = location.hash.startsWith(PREFIX);

    const keep = () => {
        clearTimeout(waiting);
        waiting = setTimeout(async () => {
            const text = view.state.doc.toString(), options = line.value;
            try {
                // The text of a link stays in the link, so that it replaces nothing that the reader wrote.
                if (fromLink)
                    window.history.replaceState(null, "", await fragment(text, options));
                else if (text === original.text && options === original.options)
                    localStorage.removeItem(key);
                else
                    localStorage.setItem(key, JSON.stringify({text, options}));
            } catch (error) {
                state.textContent = `the text is not kept: ${error.message}`;
            }
        }, 300);
    };
    const begin = async () => {
        try {
            if (fromLink)
                return await unpack(location.hash);
        } catch (error) {
            note = `the link cannot be read: ${error.message}`;
            fromLink = false;
        }
        try {
            const {text, options} = JSON.parse(localStorage.getItem(key));
            note ||= "as you left it; Reset brings the first text back";
            return {text: String(text), options: String(options)};
        } catch {
            return original; // nothing is kept, or this browser keeps nothing
        }
    };
    const show = ({text, options}) => {
        line.value = options;
        view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}});
    };

    await offline();
    const first = await begin();
    const bar = form.querySelector("p");
    form.querySelector("details")?.remove();
    const line = add(add(form, "label", {}, "options "), "input", {value: first.options, spellcheck: false, autocapitalize: "off"});
    const check = add(add(form, "label"), "input", {type: "checkbox"});
    check.after(" look for races, missing barriers and accesses out of bounds");
    line.oninput = keep;
    const reset = add(bar, "button", {type: "button", onclick: () => show(original)}, "Reset");
    const share = add(bar, "button", {type: "button"}, "Link");
    const name = `${program.replace(/.*\//, "")}.cu`;
    const save = add(bar, "button", {type: "button", onclick: () => {
        const href = URL.createObjectURL(new Blob([view.state.doc.toString()]));
        Object.assign(document.createElement("a"), {href, download: name}).click();
    }}, "Download");
    const file = Object.assign(document.createElement("input"), {type: "file", accept: ".cu", oninput: async () =>
        show({text: await file.files[0].text(), options: line.value})});
    const read = add(bar, "button", {type: "button", onclick: () => file.click()}, "Open");
    stop.after(reset, share, save, read);
    share.onclick = async () => {
        const href = new URL(await fragment(view.state.doc.toString(), line.value), location.href).href;
        const copied = await navigator.clipboard?.writeText(href).then(() => " (copied)", () => "");
        state.replaceChildren();
        add(state, "a", {href}, "link to this text");
        state.append(copied ?? "");
    };
    check.checked = exercise === "check";
    const fetched = form.children[1], progress = document.createElement("progress");
    Object.assign(progress, {hidden: true, ariaLabel: "the compiler is fetched"});
    state.after(progress);
    const box = add(panel, "div", {className: "editor"});
    form.after(box);
    const list = add(panel, "ul", {ariaLabel: "messages of the compiler", hidden: true});
    box.after(list);
    const run = () => { form.requestSubmit(); return true; };
    const view = new EditorView({parent: box, state: EditorState.create({doc: first.text, extensions: extensions(run, byHand => {
        keep();
        if (byHand)
            warm();
    })})});
    // Signs that keyboards of phones hide; site.css shows them on touch screens. The editor keeps the focus, so that the keyboard stays.
    const signs = add(box, "p", {className: "signs", role: "group", ariaLabel: "signs to insert"});
    box.prepend(signs);
    for (const sign of "{}()[]<>;=*&#")
        add(signs, "button", {type: "button", onpointerdown: event => event.preventDefault(), onclick: () =>
            view.dispatch(view.state.replaceSelection(sign), {userEvent: "input.type", scrollIntoView: true})}, sign);
    for (const one of sources)
        (one.closest("details") ?? one.closest(".table")).hidden = true;
    panel.classList.add("edited");
    state.textContent = note;
    addEventListener("hashchange", async () => {
        fromLink ||= location.hash.startsWith(PREFIX);
        if (location.hash.startsWith(PREFIX)) {
            show(await begin());
            state.textContent = note;
        }
    });

    function diagnose(found) {
        const placed = found.map(one => place(view.state.doc, one));
        view.dispatch(setDiagnostics(view.state, placed));
        list.replaceChildren();
        list.hidden = !found.length;
        found.forEach((one, index) => add(add(list, "li"), "button", {type: "button", className: placed[index].severity, onclick: () => {
            const at = Math.min(placed[index].from, view.state.doc.length);
            view.dispatch({selection: {anchor: at}, effects: EditorView.scrollIntoView(at, {y: "center"})});
            view.focus();
        }}, `line ${one.line}: ${one.text}`));
    }

    // What progress.js lists
    function judge(status) {
        if (exercise !== undefined && !/^stopped/.test(status))
            try {
                localStorage.setItem(`state: ${program}`, {0: "done", 2: "waived"}[status] ?? "wrong");
            } catch {} // a browser that keeps nothing
    }

    function advance({what, done, total}) {
        const says = receive || done < total ? what : ""; // no more, once the compiler waits for a run
        running = what === "runs";
        progress.hidden = !(done < total);
        Object.assign(progress, {max: total || 1, value: done || 0, ariaLabel: what});
        if (state.textContent !== says)
            state.textContent = says;
    }

    function end(kill = true) {
        if (kill)
            worker?.terminate();
        worker = kill ? undefined : worker;
        receive = undefined;
        running = !(progress.hidden = true);
    }

    // Fetches the compiler, which waits for a run.
    function warm() {
        if (worker || location.protocol === "file:")
            return;
        worker = new Worker(`${WORKER}?bytes=${panel.dataset.bytes}`, {type: "module"});
        worker.onmessage = ({data}) => receive ? receive(data) : data.progress && advance(data.progress);
        worker.onerror = event => {
            const status = `the compiler failed: ${event.message || "it cannot be fetched"}`;
            if (receive)
                return receive({end: {status}, failed: true});
            end();
            state.textContent = status;
        };
    }

    // As start() of site.js: runs the text, passes text and pictures to `on`, and resolves to status and seconds.
    function start(args, on) {
        let wrong = 0, timer;
        diagnose([]);
        if (location.protocol === "file:")
            return {status: "browsers compile only in pages that a server sends: make serve"};
        warm();
        return new Promise(resolve => {
            const finish = (status, more = {}, kill = true) => {
                clearTimeout(timer);
                end(kill);
                resolve({status, ...more});
            };
            // The compiler does not listen while it works, so it is ended too, unless the program runs.
            const quit = why => {
                if (running)
                    return worker.postMessage({stop: why});
                finish(why);
                warm();
            };
            const wait = () => {
                clearTimeout(timer);
                timer = setTimeout(() => quit(`stopped after ${SECONDS} s`), SECONDS * 1000);
            };
            receive = ({progress, out, err, file, diagnostics, end, failed}) => {
                if (progress) {
                    advance(progress);
                    wait();
                }
                if (out ?? err)
                    on({text: String(out ?? err)});
                if (file?.bytes[0] === 80 && file.bytes[1] === 54) // P6: a picture
                    on({picture: file.bytes});
                if (diagnostics) {
                    diagnose(diagnostics);
                    wrong = diagnostics.filter(one => one.severity === "error").length;
                }
                if (end) {
                    const {run = 0, ...others} = end.times ?? {}, compiled = Object.values(others).reduce((sum, part) => sum + part, 0);
                    const says = compiled ? `, compiled in ${(compiled / 1000).toFixed(1)} s` : "";
                    const status = wrong ? `does not compile: ${wrong} ${wrong > 1 ? "errors" : "error"}` : end.status;
                    judge(end.status);
                    finish(status, {seconds: run / 1000, says}, !!failed);
                    fetched.hidden ||= !failed;
                }
            };
            stop.onclick = () => quit("stopped");
            wait();
            const text = view.state.doc.toString(), name = `${program}.cu`;
            worker.postMessage({run: {text, name, args, check: check.checked, exercise: exercise !== undefined}});
        });
    }

    const words = () => (line.value.match(/"[^"]*"|\S+/g) ?? []).map(word => word.replaceAll('"', ""));
    return {start, words, warm, list, focus: () => view.focus()};
}
