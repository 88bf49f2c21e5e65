// SPDX-License-Identifier: MIT
// The list of the exercises: says of each one what the browser has kept of it. editor.js writes both entries.
let done = 0;
const items = [...document.querySelectorAll("[data-exercise]")];
for (const item of items) {
    const state = localStorage.getItem(`state: ${item.dataset.exercise}`), begun = localStorage.getItem(`cuda: ${item.dataset.exercise}`);
    done += state === "done";
    item.append(`: ${state ?? (begun ? "changed" : "open")}`);
}
document.getElementById("count").textContent = `${done} of ${items.length} are done.`;
