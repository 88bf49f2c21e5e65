// SPDX-License-Identifier: MIT
// The search box of each page. Below this text make site calls search() with rows of name, title and address. A row is found if each
// word occurs in its name or title. The arrows lead through the results, Enter to the first one.
"use strict";

function search(rows) {
    const folder = document.currentScript.src.replace(/[^/]*$/, ""), form = document.createElement("form");
    form.setAttribute("role", "search");
    form.innerHTML = `<input type="search" placeholder="program, term, function" autocomplete="off" aria-label="search">
        <span role="status"></span><ul></ul>`;
    document.querySelector("header").append(form);
    const [input, count, list] = form.children;

    // Where the name begins with the first word, after its chapter; then where it contains it
    function rank(name, word) {
        const own = name.toLowerCase().replace(/.*\/|^_+/g, "");
        return own === word ? 0 : own.startsWith(word) ? 1 : own.includes(word) ? 2 : 3;
    }

    function find() {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        const found = words.length ? rows.filter(row => words.every(word => `${row[0]} ${row[1]}`.toLowerCase().includes(word))) : [];
        found.sort((a, b) => rank(a[0], words[0]) - rank(b[0], words[0]));
        count.textContent = words.length ? `${found.length} found` : "";
        list.replaceChildren(...found.slice(0, 12).map(([name, title, address]) => {
            const item = document.createElement("li"), link = document.createElement("a");
            item.append(Object.assign(link, {href: folder + address, textContent: name}), title && ` ${title}`);
            return item;
        }));
    }

    input.oninput = find;
    form.onsubmit = event => { event.preventDefault(); list.querySelector("a")?.click(); };
    form.onkeydown = event => {
        const stops = [input, ...list.querySelectorAll("a")], step = {ArrowDown: 1, ArrowUp: stops.length - 1}[event.key];
        if (step) {
            event.preventDefault();
            stops[(stops.indexOf(document.activeElement) + step) % stops.length].focus();
        }
    };
}
