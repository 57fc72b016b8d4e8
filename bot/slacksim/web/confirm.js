// The question that an element asks before it acts.
import { h } from "./dom.js";
import { plain, textObject } from "./mrkdwn.js";

// confirmed resolves to true at once when there is nothing to ask, and otherwise to the person's answer.
export function confirmed(confirm) {
  if (!confirm) return Promise.resolve(true);
  return new Promise((resolve) => {
    const yes = h("button", { class: "btn solid " + (confirm.style === "danger" ? "danger" : "primary"), value: "yes" }, plain(confirm.confirm));
    const no = h("button", { class: "btn", value: "no", autofocus: true }, plain(confirm.deny));
    const dialog = h("dialog", { class: "dialog small", "aria-labelledby": "confirm-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "confirm-title" }, plain(confirm.title)),
        h("div", { class: "dialog-body tx" }, textObject(confirm.text)),
        h("div", { class: "dialog-foot" }, no, yes)));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
