// SPDX-License-Identifier: MIT
// The service worker of the pages: keeps what was fetched, and answers with it when there is no network. A page that was there before this
// worker sends the addresses of what it had fetched.
const kept = caches.open("pages");

oninstall = () => skipWaiting();
onactivate = event => event.waitUntil(clients.claim());
const held = one => new Request(one, {cache: "force-cache"}); // from the browser's own cache, however new the file was
onmessage = event => event.waitUntil(kept.then(cache => Promise.allSettled(event.data.map(one => cache.add(held(one))))));
onfetch = event => {
    const {request} = event;
    if (request.method !== "GET" || new URL(request.url).origin !== location.origin)
        return;
    const answer = async () => {
        const cache = await kept;
        try {
            const fresh = await fetch(request);
            if (fresh.ok)
                event.waitUntil(cache.put(request, fresh.clone()));
            return fresh;
        } catch {
            return await cache.match(request, {ignoreSearch: true}) ?? Response.error();
        }
    };
    event.respondWith(answer());
};
