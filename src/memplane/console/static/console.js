// Keyboard shortcuts, live updates and status messages of the console.
"use strict";

(() => {
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  // Single-key shortcuts can be turned off, for example for dictation; localStorage keeps the choice.
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

  // Shortcuts move in a list (j, k), open (Enter), search (/), or click the element with that data-key.
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const marked = () => document.activeElement.closest("[data-row]");
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(marked()) + step))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };

  // A shortcut inside a row works only while that row is selected; one outside of rows works on the whole page.
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
    // Enter activates the focused link or button.
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
    // Ignore key repeat: the user has not seen the next item yet.
    const pressed = event.repeat ? null : meant(event.key);
    if (pressed) press(event, pressed);
  });

  // Focus the first field of a section that opens.
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

  // Status messages. The message of a new page is set again, because screen readers announce only changes. Its code is
  // removed from the URL, so that a reload does not repeat it.
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

  // On a narrow screen a table row is a card, and each cell shows its column name.
  // Screen readers do not treat elements laid out as blocks as a table unless they have roles.
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

  // On a narrow screen, scroll the current tab into view.
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;

  // Keep the focus in a list that is updated.
  let place = -1;
  document.addEventListener("htmx:beforeSwap", () => { place = rows().indexOf(document.activeElement); });
  document.addEventListener("htmx:afterSwap", () => {
    const all = rows();
    if (place >= 0 && all.length) all[Math.min(place, all.length - 1)].focus();
  });

  // Destructive forms ask for confirmation. A form is sent once, even if the key is pressed again before the next page.
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

  // Show errors of htmx requests.
  document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
    const words = (xhr.getResponseHeader("content-type") || "").startsWith("text/plain") ? xhr.responseText.trim() : "";
    say(words || `Request failed (${xhr.status}).`);
  });

  // A slider sets a date, in days since the first one.
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!slider.dataset || !slider.dataset.slider) return;
    const day = new Date(`${slider.dataset.from}T00:00:00Z`);
    day.setUTCDate(day.getUTCDate() + Number(slider.value));
    const field = document.getElementById(slider.dataset.slider);
    field.value = slider.value === slider.max ? "" : day.toISOString().slice(0, 10);
    slider.setAttribute("aria-valuetext", field.value || "now");
  });

  // In the turn field, Enter sends and Shift+Enter adds a line.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("[data-asks]")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });

  // Print buttons.
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-prints]")) window.print();
  });

  // Scroll to the passage that was linked to.
  const here = document.querySelector("[data-here]");
  if (here) here.scrollIntoView({ block: "center" });

  // Live lists: data-live is the URL of server-sent events; each event contains HTML to insert at the top.
  for (const part of document.querySelectorAll("[data-live]")) {
    const source = new EventSource(part.dataset.live);
    source.onmessage = (event) => {
      part.insertAdjacentHTML("afterbegin", event.data);
      if (window.htmx) window.htmx.process(part);
    };
    window.addEventListener("pagehide", () => source.close());
  }
})();
