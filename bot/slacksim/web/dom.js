// h builds an element. Children are nodes or text; text is set as text, so nothing that came from a message can be markup.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "value" || k === "checked" || k === "selected" || k === "disabled") e[k] = v;
    else e.setAttribute(k, v === true ? "" : String(v));
  }
  put(e, ...children);
  return e;
}

export function put(e, ...children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    e.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return e;
}

export function fill(e, ...children) {
  e.replaceChildren();
  return put(e, ...children);
}

export const $ = (id) => document.getElementById(id);

// safeLink gives an address that is fit for href, or nothing.
export function safeLink(url) {
  return /^(https?:\/\/|mailto:)/i.test(url || "") ? url : undefined;
}

export function anchor(url, ...children) {
  const href = safeLink(url);
  return href ? h("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children) : h("span", {}, ...children);
}

export function toast(text) {
  const t = h("div", { class: "toast" }, h("span", { "aria-hidden": "true" }, "⚠"), h("span", {}, text));
  const box = $("toasts");
  box.append(t);
  box.hidePopover();
  box.showPopover(); // again, so that it stands above a dialog
  setTimeout(() => t.classList.add("gone"), 6000);
  setTimeout(() => { t.remove(); if (!box.childElementCount) box.hidePopover(); }, 6600);
}

let serial = 0;
export const newID = (prefix) => `${prefix}-${++serial}`;
