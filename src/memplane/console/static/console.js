// What the console does besides links and forms: keys, live parts, and words that say what happened.
"use strict";

(() => {
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  // Whoever dictates, or rests a hand on the keyboard, turns single keys off; what the browser keeps for us says so.
  const KEYS = "memplane-keys";
  const keyless = () => { try { return localStorage.getItem(KEYS) === "off"; } catch { return false; } };
  const reflect = () => document.documentElement.classList.toggle("keyless", keyless());
  reflect();
  const keys = document.getElementById("keys");
  if (keys) {
    keys.checked = !keyless();
    keys.addEventListener("change", () => {
      try { localStorage.setItem(KEYS, keys.checked ? "on" : "off"); } catch { keys.checked = true; }
      reflect();
    });
  }

  // One key moves through a list (j, k), opens (Enter), searches (/), or decides: any element with data-key is pressed by it.
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const marked = () => document.activeElement.closest("[data-row]");
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(marked()) + step))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };

  // What stands in a row is pressed by its key only while that row is marked; what stands outside of rows is the page's.
  const meant = (key) => {
    const row = marked();
    const all = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
    return all.find((node) => row && row.contains(node)) || all.find((node) => !node.closest("[data-row]"));
  };

  let leaving = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && typing(event.target)) { event.preventDefault(); return event.target.blur(); }
    if (typing(event.target) || leaving) return;
    // A link or a button that has the focus is what Enter is for, wherever it stands.
    if (event.key === "Enter" ? document.activeElement !== marked() : keyless()) return;
    say("");
    if (event.key === "?") return open("shortcuts");
    if (event.key === "j") return move(1);
    if (event.key === "k") return move(-1);
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); }
      return;
    }
    // A key that is held down decides once: what comes up after it was not looked at.
    const pressed = event.repeat ? null : meant(event.key);
    if (pressed) press(event, pressed);
  });

  // What unfolds gives the focus to its first field.
  const press = (event, pressed) => {
    event.preventDefault();
    pressed.click();
    const folded = pressed.closest("details");
    if (folded && folded.open) folded.querySelector("textarea, input:not([type=hidden])").focus();
  };

  const open = (name) => {
    const dialog = document.getElementById(name);
    if (dialog) dialog.showModal();
  };
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) open(opener.dataset.opens);
  });

  // What happened is said in words. What a page says as it opens is put there anew, or nobody would hear it; and it is
  // taken out of the address, or it would be said again.
  const told = document.getElementById("told");
  const say = (text) => { if (told) told.textContent = text; };
  const next = document.querySelector("main [autofocus]");
  if (next && document.activeElement === document.body) next.focus();
  if (told && told.textContent) {
    const happened = told.textContent;
    say("");
    setTimeout(() => say(happened), 100);
    const address = new URL(location.href);
    for (const name of ["told", "at"]) address.searchParams.delete(name);
    history.replaceState(history.state, "", address);
  }

  // On a narrow screen a row of a table is a card, and each cell says what it is.
  // Parts that are laid out as blocks are no table to a screen reader any more, unless they say so.
  const ROLES = [["thead, tbody", "rowgroup"], ["tr", "row"], ["thead th", "columnheader"], ["tbody th", "rowheader"], ["td", "cell"]];
  const label = () => {
    for (const table of document.querySelectorAll("table:not(.stacked):not(.beside)")) {
      const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
      for (const row of table.tBodies[0]?.rows || []) [...row.cells].forEach((cell, at) => { cell.dataset.label = names[at] || ""; });
      for (const [part, role] of ROLES) for (const node of table.querySelectorAll(part)) node.setAttribute("role", role);
      table.setAttribute("role", "table");
      table.classList.add("stacked");
    }
  };
  label();
  document.addEventListener("htmx:afterSwap", label);

  // On a narrow screen the pages are one long row: the one that is open is brought into it.
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;

  // Whoever is in a list that changes under them stays in it.
  let place = -1;
  document.addEventListener("htmx:beforeSwap", () => { place = rows().indexOf(document.activeElement); });
  document.addEventListener("htmx:afterSwap", () => {
    const all = rows();
    if (place >= 0 && all.length) all[Math.min(place, all.length - 1)].focus();
  });

  // Forms that destroy something ask first. What was sent is sent once, however often a key is pressed until the next page.
  let agreed = null;
  const sure = document.getElementById("sure");
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.confirm && form !== agreed) {
      event.preventDefault();
      document.getElementById("sure-what").textContent = form.dataset.confirm;
      sure.returnValue = "";
      sure.onclose = () => {
        if (sure.returnValue !== "yes") return;
        agreed = form;
        form.requestSubmit(event.submitter);
      };
      sure.showModal();
    } else if (form.method === "post" && !form.hasAttribute("hx-post")) {
      leaving = true;
    }
  });
  window.addEventListener("pageshow", () => { leaving = false; agreed = null; });

  // What came wrong out of a request of a part of a page is said, not swallowed.
  document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
    const words = (xhr.getResponseHeader("content-type") || "").startsWith("text/plain") ? xhr.responseText.trim() : "";
    say(words || `That did not work (${xhr.status}).`);
  });

  // A slider moves a date: days since the first one.
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!slider.dataset || !slider.dataset.slider) return;
    const day = new Date(`${slider.dataset.from}T00:00:00Z`);
    day.setUTCDate(day.getUTCDate() + Number(slider.value));
    const field = document.getElementById(slider.dataset.slider);
    field.value = slider.value === slider.max ? "" : day.toISOString().slice(0, 10);
    slider.setAttribute("aria-valuetext", field.value || "now");
  });

  // A field for one turn: Enter asks, Shift and Enter begin a new line.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("[data-asks]")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });

  // A page that is to be printed has a button for it.
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-prints]")) window.print();
  });

  // A page that was opened for one passage shows it.
  const here = document.querySelector("[data-here]");
  if (here) here.scrollIntoView({ block: "center" });

  // Live parts: data-live names a stream of server-sent events; each brings a piece of page to put first.
  for (const part of document.querySelectorAll("[data-live]")) {
    const source = new EventSource(part.dataset.live);
    source.onmessage = (event) => {
      part.insertAdjacentHTML("afterbegin", event.data);
      if (window.htmx) window.htmx.process(part);
    };
    window.addEventListener("pagehide", () => source.close());
  }
})();
