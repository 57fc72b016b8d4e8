// The modal on top of the person's stack.
import { h, fill } from "./dom.js";
import { store, act } from "./store.js";
import { plain } from "./mrkdwn.js";
import { blocks } from "./blocks.js";
import { field } from "./inputs.js";

let dialog, shown = null, fields = new Map();

// showModal makes the dialog match the state. What was typed survives an update of the same view, by block and action.
export function showModal() {
  const stack = store.state.views;
  const view = stack[stack.length - 1];
  if (!view) {
    shown = null;
    fields.clear();
    if (dialog?.open) dialog.close();
    return;
  }
  if (shown && shown.id === view.id && shown.rev === view.rev) return;
  const typed = new Map();
  if (shown?.id === view.id) for (const [key, f] of fields) typed.set(key, f.get());
  const focused = shown?.id === view.id ? document.activeElement?.id : null;
  shown = view;
  fields = new Map();
  draw(view, stack.length, typed);
  if (!dialog.open) dialog.showModal();
  const invalid = dialog.querySelector("[aria-invalid=true]");
  (invalid || (focused && document.getElementById(focused)) || dialog.querySelector("[data-autofocus]"))?.focus();
}

function draw(view, depth, typed) {
  if (!dialog) {
    dialog = h("dialog", { class: "dialog", "aria-labelledby": "modal-title" });
    dialog.addEventListener("cancel", (e) => { e.preventDefault(); close(); });
    document.body.append(dialog);
  }
  const ctx = {
    input: (block) => {
      const f = field(block, view.errors[block.block_id], `${view.id}-${block.block_id}`);
      const key = block.block_id + "/" + f.action;
      if (typed.has(key)) f.set(typed.get(key));
      fields.set(key, f);
      return f.node;
    },
    press: (e, block, choice) => act("view", { view_id: view.id, block_id: block.block_id, action_id: e.action_id, values: values(), ...choice }),
  };
  const submit = view.submit && h("button", { class: "btn solid primary", type: "submit" }, plain(view.submit));
  const form = h("form", { class: "modal-form", novalidate: true },
    h("div", { class: "dialog-head" },
      depth > 1 && h("button", { type: "button", class: "icon", "aria-label": "Back", onclick: close }, "‹"),
      h("span", { class: "app-mark", "aria-hidden": "true" }, store.state.app.name[0]),
      h("h2", { id: "modal-title" }, plain(view.title)),
      h("button", { type: "button", class: "icon", "aria-label": "Close", onclick: () => act("close", { view_id: view.id, all: true }) }, "✕")),
    h("div", { class: "dialog-body" }, blocks(view.blocks, ctx)),
    h("div", { class: "dialog-foot" },
      h("button", { type: "button", class: "btn", onclick: close }, view.close ? plain(view.close) : submit ? "Cancel" : "Close"), submit));
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const missing = [...fields.values()].filter((f) => !f.complete());
    if (missing.length) return missing[0].focus();
    submit.disabled = true;
    submit.setAttribute("aria-busy", "true");
    await act("submit", { view_id: view.id, values: values() });
    submit.disabled = false;
    submit.removeAttribute("aria-busy");
  });
  fill(dialog, form);
}

const close = () => act("close", { view_id: shown?.id });

function values() {
  const out = {};
  for (const [key, f] of fields) out[key] = f.get();
  return out;
}

