// Keeps a page up to date: asks for its changing part when the server says that something changed, and counts ages and
// leases down in between. Without it the page is the same, as of when it was loaded.
"use strict";

(() => {
  const badge = document.getElementById("live");
  let busy = false;

  function say(on) {
    if (!badge) return;
    badge.className = on ? "live on" : "live off";
    badge.textContent = on ? "live" : "not connected";
  }

  // A part in which somebody types, opened something, or that holds the focus, is left alone until they are done.
  function inUse(part) {
    if (part.querySelector("details[open]")) return true;
    const active = document.activeElement;
    if (!active || !part.contains(active)) return false;
    return active.matches("input, select, textarea, button") || String(window.getSelection());
  }

  async function update() {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Lessor-Live": "1" }, credentials: "same-origin" });
      if (answer.redirected || answer.status === 401) { location.reload(); return; }
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.getElementById(part.id);
        if (!next || inUse(part) || next.innerHTML === part.innerHTML) continue;
        const scrolled = [...part.querySelectorAll(".table, pre")].map((el) => [el.scrollLeft, el.scrollTop]);
        const focused = [...part.querySelectorAll("a, [tabindex]")].indexOf(document.activeElement);
        part.replaceChildren(...next.childNodes);
        [...part.querySelectorAll(".table, pre")].forEach((el, i) => { if (scrolled[i]) [el.scrollLeft, el.scrollTop] = scrolled[i]; });
        const again = focused < 0 ? null : part.querySelectorAll("a, [tabindex]")[focused];
        if (again) again.focus({ preventScroll: true });
      }
    } catch (_) {
      say(false);
    } finally {
      busy = false;
    }
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
    const now = Date.now();
    for (const el of document.querySelectorAll("[data-at]")) {
      const d = now - Number(el.dataset.at);
      const text = d < 0 ? "in " + span(-d) : span(d) + " ago";
      if (el.textContent !== text) el.textContent = text;
    }
    for (const el of document.querySelectorAll("[data-until]")) {
      const left = Math.max(0, Number(el.dataset.until) - now);
      const share = Math.min(100, 100 * left / Number(el.dataset.ttl));
      el.querySelector(".fill").setAttribute("width", share.toFixed(1));
      el.querySelector(".bar").classList.toggle("late", share < 100 / 3);
      el.querySelector(".left").textContent = span(left) + " left";
    }
  }

  if (document.querySelector("[data-live]")) {
    const stream = new EventSource("/live");
    stream.onopen = () => say(true);
    stream.onerror = () => say(false);
    stream.addEventListener("changed", update);
    document.addEventListener("visibilitychange", update);
  }
  setInterval(count, 1000);
})();
