// Asks in a dialog what is a page of its own without this script, and brings the focus back after an action.
"use strict";

(() => {
  const done = "lessor-done"; // in the session: the object that was acted on, and how far the page was scrolled
  let sent = false;

  // The path of a form without its verb names the object: /schedules/x/pause and /schedules/x/resume are about one.
  const objectOf = (form) => new URL(form.action).pathname.replace(/(^\/[^/]+\/[^/]+)\/[^/]+$/, "$1");

  async function ask(form) {
    const address = form.action + "?" + new URLSearchParams(new FormData(form));
    const answer = await fetch(address, { credentials: "same-origin" }).catch(() => null);
    const page = answer && new DOMParser().parseFromString(await answer.text(), "text/html");
    const question = page && page.getElementById("question"), refusal = page && page.getElementById("problem");
    if (refusal) return complain(refusal);
    if (!question) { location.assign(address); return; } // that page says why
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "asked");
    dialog.append(question);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.addEventListener("click", (e) => {
      if (e.target !== dialog && !e.target.closest("[data-close]")) return;
      e.preventDefault();
      dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  function complain(refusal) {
    document.getElementById("problem")?.remove();
    document.getElementById("main").prepend(refusal);
    refusal.focus();
  }

  document.addEventListener("submit", (e) => {
    if (e.target.matches("[data-ask]")) {
      e.preventDefault();
      if (!document.querySelector("dialog")) ask(e.target);
    } else if (e.target.method === "post") {
      if (sent) e.preventDefault(); // a second click must not act twice
      sent = true;
      sessionStorage.setItem(done, JSON.stringify([objectOf(e.target), scrollY]));
    }
  });
  addEventListener("pageshow", (e) => { if (e.persisted) sent = false; });

  // A refused form is answered under its own address; the page that is shown has another.
  const problem = document.getElementById("problem");
  if (problem) {
    history.replaceState(null, "", problem.dataset.page);
    // From here on the fields are the visitor's: the live update leaves them alone.
    for (const field of document.querySelectorAll("main input")) {
      [field.value, field.checked] = [field.value, field.checked];
    }
  }

  const [object, scrolled] = JSON.parse(sessionStorage.getItem(done) || "[]");
  sessionStorage.removeItem(done);
  const outcome = document.getElementById("outcome");
  if (!object || !outcome) return;
  scrollTo(0, scrolled);
  const form = [...document.querySelectorAll("main form")].find((f) => objectOf(f) === object);
  const button = form && form.querySelector("button");
  if (!button) return; // the message has the focus
  button.setAttribute("aria-describedby", "outcome");
  button.focus({ preventScroll: true });
})();
