// Interactive elements outside of inputs: what a press sends at once.
import { h, newID, anchor } from "./dom.js";
import { plain, plainString, textObject } from "./mrkdwn.js";
import { store } from "./store.js";
import { confirmed } from "./confirm.js";

// press asks the element's own question first, then sends; the element is busy while the app works.
async function press(e, block, ctx, choice, node) {
  if (!(await confirmed(e.confirm))) return false;
  node?.setAttribute("aria-busy", "true");
  try {
    return await ctx.press(e, block, choice || {});
  } finally {
    node?.removeAttribute("aria-busy");
  }
}

function button(e, block, ctx) {
  const node = h("button", {
    type: "button", class: "btn " + (e.style || ""), "aria-label": e.accessibility_label,
    onclick: () => press(e, block, ctx, {}, node),
  }, plain(e.text));
  if (!e.url) return node;
  const link = anchor(e.url, plain(e.text), " ↗");
  link.className = "btn " + (e.style || "");
  link.addEventListener("click", () => ctx.press(e, block, {}));
  return link;
}

function overflow(e, block, ctx) {
  const id = newID("menu");
  const menu = h("div", { id, popover: "auto", class: "menu", role: "menu" });
  const open = h("button", { type: "button", class: "btn more", "aria-label": "More actions", "aria-haspopup": "menu", popovertarget: id }, "⋯");
  for (const o of e.options) {
    menu.append(h("button", { type: "button", role: "menuitem", onclick: () => { menu.hidePopover(); press(e, block, ctx, { option: o.value }, open); } },
      plain(o.text), o.description && h("small", {}, plain(o.description))));
  }
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    const at = open.getBoundingClientRect();
    const box = menu.getBoundingClientRect();
    menu.style.left = Math.max(8, Math.min(at.left, innerWidth - box.width - 8)) + "px";
    menu.style.top = (at.bottom + box.height + 8 > innerHeight ? at.top - box.height - 4 : at.bottom + 4) + "px";
    menu.querySelector("button")?.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const items = [...menu.children];
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  });
  return h("span", { class: "overflow" }, open, menu);
}

export const optionNodes = (list, chosen) => list.map((o) => h("option", { value: o.value, selected: o.value === chosen }, plainString(o.text)));

function select(e, block, ctx) {
  const first = h("option", { value: "", disabled: true, selected: !e.initial_option }, plainString(e.placeholder) || "Choose…");
  const node = h("select", { class: "pick", "aria-label": plainString(e.placeholder) || "Choose" }, first,
    e.options && optionNodes(e.options, e.initial_option?.value),
    e.option_groups?.map((g) => h("optgroup", { label: plainString(g.label) }, optionNodes(g.options, e.initial_option?.value))));
  node.addEventListener("change", () => press(e, block, ctx, { option: node.value }, node));
  return node;
}

function users(e, block, ctx) {
  const node = h("select", { class: "pick", "aria-label": plainString(e.placeholder) || "Choose a person" },
    h("option", { value: "", disabled: true, selected: !e.initial_user }, plainString(e.placeholder) || "Choose a person…"),
    store.state.users.map((u) => h("option", { value: u.id, selected: u.id === e.initial_user }, u.real_name)));
  node.addEventListener("change", () => press(e, block, ctx, { user: node.value }, node));
  return node;
}

function day(e, block, ctx) {
  const node = h("input", { type: "date", class: "pick", value: e.initial_date || "", "aria-label": plainString(e.placeholder) || "Choose a day" });
  node.addEventListener("change", () => press(e, block, ctx, { date: node.value }, node));
  return node;
}

function choices(e, block, ctx) {
  const many = e.type === "checkboxes";
  const name = newID("choice");
  const initial = (many ? e.initial_options || [] : [e.initial_option]).map((o) => o?.value);
  const node = h("div", { class: "choices", role: many ? "group" : "radiogroup", "aria-label": "Choices" }, e.options.map((o) =>
    h("label", {}, h("input", { type: many ? "checkbox" : "radio", name, value: o.value, checked: initial.includes(o.value) }), h("span", {}, textObject(o.text)))));
  node.addEventListener("change", () => {
    const picked = [...node.querySelectorAll("input:checked")].map((i) => i.value);
    press(e, block, ctx, many ? { options: picked } : { option: picked[0] }, node);
  });
  return node;
}

const kinds = { button, overflow, static_select: select, users_select: users, datepicker: day, radio_buttons: choices, checkboxes: choices };

export const interactive = (e, block, ctx) => (kinds[e.type] ? kinds[e.type](e, block, ctx) : h("span", { class: "unknown" }, `(${e.type})`));
