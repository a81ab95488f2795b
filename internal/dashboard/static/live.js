// Keeps a page up to date: asks for its changing part once a second while the page can be seen, and counts ages and
// leases in between. Without it the page is the same, as of when it was loaded.
"use strict";

(() => {
  const badge = document.getElementById("live"), newRows = document.getElementById("new-rows");
  if (!badge || !document.querySelector("[data-live]")) return;

  const every = 1000; // between two requests
  const patience = 5000; // a server that does not answer in this time is offline
  let version = "0", lines = []; // what the server sent last
  let clock = Number(badge.dataset.now), clockReadAt = performance.now(); // the server's time
  let offline = false, asking = false, timer = 0;

  // The server's time. It stands still while the server does not answer: leases are not charged for downtime.
  const now = () => clock + (offline ? 0 : performance.now() - clockReadAt);

  async function poll() {
    clearTimeout(timer);
    if (asking || document.hidden) return; // a page that nobody can see asks for nothing
    asking = true;
    const answer = await ask();
    asking = false;
    if (answer.refused) return location.reload(); // shows the login, or the reason
    say(answer.ok);
    if (answer.pieces) take(answer);
    show();
    timer = setTimeout(poll, every);
  }

  async function ask() {
    try {
      const headers = { "X-Lessor-Live": version };
      const r = await fetch(location.href, { headers, cache: "no-store", signal: AbortSignal.timeout(patience) });
      if (!r.ok) return { refused: [401, 403, 404].includes(r.status) };
      const sent = r.status === 204 ? {} : await r.json();
      [clock, clockReadAt] = [Number(r.headers.get("X-Lessor-Now")), performance.now()];
      return { ok: true, ...sent };
    } catch (_) {
      return {};
    }
  }

  function say(online) {
    offline = !online;
    document.body.classList.toggle("offline", offline);
    badge.className = online ? "live on" : "live off";
    const since = new Date(clock).toISOString().slice(11, 19);
    write(badge, online ? "live" : "offline since " + since + ", figures frozen");
  }

  // Makes the new version from the pieces that changed and the lines that did not.
  function take(sent) {
    lines = sent.pieces.flatMap((p) => typeof p === "string" ? p.split("\n") : lines.slice(p[0], p[0] + p[1]));
    version = sent.version;
    const fresh = new DOMParser().parseFromString(lines.join("\n"), "text/html");
    const ends = [...document.querySelectorAll(".output")].filter(atEnd);
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (next) morph(part, next);
    }
    ends.forEach(toEnd);
  }

  // Output is shown at its end, and follows it until somebody scrolls away from it.
  const atEnd = (box) => box.scrollHeight - box.clientHeight - box.scrollTop < 4;
  const toEnd = (box) => { box.scrollTop = box.scrollHeight; };

  // Makes an element like another one. Nodes that both have stay, and with them what is focused, typed, opened,
  // selected and scrolled.
  function morph(old, next) {
    for (const { name } of [...old.attributes])
      if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of next.attributes)
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old.matches("[data-at], [data-until]")) return; // count writes their text
    if (old.matches("[data-rows]")) return update(old, next);
    let at = old.firstChild;
    for (const child of [...next.childNodes]) {
      let mine = at;
      while (mine && !alike(mine, child)) mine = mine.nextSibling;
      if (!mine) {
        old.insertBefore(child, at);
        continue;
      }
      while (at !== mine) at = drop(at);
      at = mine.nextSibling;
      if (mine.nodeType === Node.ELEMENT_NODE) morph(mine, child);
      else if (!write(mine, child.data)) version = "0"; // the next answer has it again
    }
    while (at) at = drop(at);
  }

  const mark = (node) => node.dataset?.key ?? (node.id || node.getAttribute?.("action") || node.getAttribute?.("role"));
  const alike = (a, b) => a.nodeName === b.nodeName && mark(a) === mark(b);

  // Removes a node, unless it has rows, which stay until somebody hides them, or text that somebody has typed and not
  // sent.
  function drop(node) {
    const next = node.nextSibling, fields = node.querySelectorAll?.("input:not([type=hidden])") ?? [];
    const list = node.querySelector?.("[data-rows='']");
    if (list?.children.length) update(list, document.createElement("tbody"));
    else if (![...fields].some((f) => f.value !== f.defaultValue)) node.remove();
    return next;
  }

  const selected = (node) => !getSelection().isCollapsed && getSelection().containsNode(node, true);

  // Writes a text unless somebody has selected it, and reports whether the node has it.
  function write(node, text) {
    if (node.textContent !== text && !selected(node)) node.textContent = text;
    return node.textContent === text;
  }

  // The rows of a list stay where they are, so that nothing moves under a pointer. Rows that the server no longer sends
  // are marked. New rows wait until somebody asks for them, except after the last row, where they move nothing. A list
  // that follows waits only while somebody uses it.
  const waiting = new Map(); // for each list the newest rows by key

  function update(old, next) {
    const mine = byKey(old), fresh = byKey(next);
    for (const [key, row] of mine) {
      row.classList.toggle("gone", !fresh.has(key));
      if (fresh.has(key)) morph(row, fresh.get(key));
    }
    const last = [...fresh.keys()].findLastIndex((key) => mine.has(key));
    if (last >= 0) old.append(...[...fresh.values()].slice(last + 1));
    waiting.set(old, fresh);
    const inUse = old.matches(":hover") || old.contains(document.activeElement) || selected(old);
    if (old.dataset.rows === "follow" && !inUse) arrange(old, fresh);
  }

  function byKey(list) {
    const rows = new Map();
    for (const row of list.children) {
      let key = row.dataset.key;
      while (rows.has(key)) key += "'"; // workers of two tenants may have one name
      rows.set(key, row);
    }
    return rows;
  }

  // Shows exactly the newest rows, in their order. Rows that keep their order are not touched.
  function arrange(old, fresh) {
    const mine = byKey(old), focused = document.activeElement;
    for (const [key, row] of mine) if (!fresh.has(key)) row.remove();
    let at = old.firstElementChild;
    for (const [key, row] of fresh) {
      const have = mine.get(key) ?? row;
      if (have === at) at = at.nextElementSibling;
      else old.insertBefore(have, at);
    }
    if (old.contains(focused)) focused.focus({ preventScroll: true });
  }

  // Says how many rows wait.
  function offer() {
    let added = 0, gone = 0, more = "";
    for (const [old, fresh] of waiting) {
      if (!old.isConnected) {
        waiting.delete(old);
        continue;
      }
      const mine = byKey(old), unseen = [...fresh.keys()].filter((key) => !mine.has(key)).length;
      if (unseen === fresh.size && old.closest("[data-live]").querySelector(".next")) more = "+";
      added += unseen;
      gone += old.querySelectorAll(":scope > .gone").length;
    }
    newRows.hidden = !added && !gone;
    write(newRows, added ? added + more + " new: show" : gone + " gone: hide");
  }

  newRows.addEventListener("click", () => {
    const [first] = waiting.keys();
    for (const [old, fresh] of waiting) arrange(old, fresh);
    version = "0"; // the next answer takes the place of a list that has no rows left
    first.closest("[tabindex]")?.focus({ preventScroll: true }); // the button disappears
    show();
  });

  // Buttons of a frozen page, or of a row that is over, would act on something else than they show.
  function show() {
    offer();
    for (const b of document.querySelectorAll(":is(main, dialog) form:is([method=post], [data-ask]) button"))
      b.disabled = offline || !!b.closest(".gone");
    count();
  }

  function span(ms) {
    const s = Math.floor(ms / 1000);
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
    if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60) % 60 + " min";
    if (s < 864000) return Math.floor(s / 86400) + " d " + Math.floor(s / 3600) % 24 + " h";
    return Math.floor(s / 86400) + " d";
  }

  function count() {
    for (const el of document.querySelectorAll("[data-at]")) {
      const d = now() - Number(el.dataset.at);
      write(el, d < 0 ? "in " + span(-d) : el.dataset.past || span(d) + " ago");
    }
    for (const el of document.querySelectorAll("[data-until]")) {
      if (el.closest(".gone")) continue;
      const left = Math.max(0, Number(el.dataset.until) - now());
      const share = Math.min(100, 100 * left / Number(el.dataset.ttl));
      el.querySelector(".fill").setAttribute("width", share.toFixed(1));
      el.querySelector(".bar").classList.toggle("late", share < 100 / 3);
      write(el.querySelector(".left"), span(left) + " left");
    }
  }

  say(true); // the page was just loaded
  document.querySelectorAll(".output").forEach(toEnd);
  document.addEventListener("visibilitychange", poll);
  setInterval(count, every);
  timer = setTimeout(poll, every);
})();
