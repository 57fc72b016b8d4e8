// Input blocks: a labelled field with its hint, counter and error. field gives {node, action, get, set, complete, focus}.
import { h } from "./dom.js";
import { plain, plainString, textObject } from "./mrkdwn.js";
import { optionNodes } from "./elements.js";
import { store } from "./store.js";

export function field(block, error, id) {
  const e = block.element;
  const made = (makers[e.type] || makers.unknown)(e, id);
  const hint = block.hint && h("div", { class: "hint", id: id + "-hint" }, plain(block.hint));
  const alert = h("div", { class: "error", id: id + "-error", role: "alert" });
  const say = (text) => {
    alert.textContent = text || "";
    made.control.toggleAttribute("aria-invalid", false);
    if (text) made.control.setAttribute("aria-invalid", "true");
  };
  made.control.setAttribute("aria-describedby", [hint && hint.id, alert.id].filter(Boolean).join(" "));
  if (!block.optional) made.control.setAttribute("aria-required", "true");
  if (e.focus_on_load) made.control.setAttribute("data-autofocus", "");
  const name = h(made.group ? "legend" : "label", made.group ? { class: "label" } : { class: "label", for: made.control.id }, plain(block.label), block.optional && h("span", { class: "optional" }, " (optional)"));
  const node = h(made.group ? "fieldset" : "div", { class: "b input" }, name, made.node, made.extra, hint, alert);
  node.addEventListener("input", () => say(""));
  say(error);
  return {
    node, action: e.action_id, get: made.get, set: made.set, focus: () => made.control.focus(),
    complete() {
      const v = made.get();
      const blank = v === "" || v.length === 0;
      const problem = blank ? (block.optional ? "" : "Please complete this required field.") : made.problem?.(v) || "";
      say(problem);
      return !problem;
    },
  };
}

const makers = {
  plain_text_input(e, id) {
    const high = e.max_length || 3000;
    const control = h(e.multiline ? "textarea" : "input", { id, class: "text", rows: e.multiline ? 6 : undefined, type: e.multiline ? undefined : "text", placeholder: plainString(e.placeholder), value: e.initial_value || "", spellcheck: "false" });
    const extra = h("div", { class: "counter", "aria-hidden": "true" });
    const count = () => {
      const left = high - control.value.length;
      extra.textContent = left < 100 || left < 0 ? String(left) : "";
      extra.classList.toggle("over", left < 0);
    };
    control.addEventListener("input", count);
    count();
    return {
      node: control, control, extra, get: () => control.value, set: (v) => { control.value = v; count(); },
      problem: (v) => v.length > high ? `Please shorten this to ${high} characters.` : v.length < (e.min_length || 0) ? `Please write at least ${e.min_length} characters.` : "",
    };
  },
  static_select(e, id) {
    const control = h("select", { id, class: "text" }, h("option", { value: "", selected: !e.initial_option }, plainString(e.placeholder) || "Choose an option"),
      e.options && optionNodes(e.options, e.initial_option?.value),
      e.option_groups?.map((g) => h("optgroup", { label: plainString(g.label) }, optionNodes(g.options, e.initial_option?.value))));
    return single(control);
  },
  users_select(e, id) {
    const control = h("select", { id, class: "text" }, h("option", { value: "", selected: !e.initial_user }, plainString(e.placeholder) || "Choose a person"),
      store.state.users.filter((u) => !u.marks.includes("deactivated")).map((u) => h("option", { value: u.id, selected: u.id === e.initial_user }, u.real_name)));
    return single(control);
  },
  datepicker: (e, id) => single(h("input", { id, type: "date", class: "text", value: e.initial_date || "" })),
  radio_buttons: (e, id) => group(e.options, "radio", id, [e.initial_option?.value]),
  checkboxes: (e, id) => group(e.options, "checkbox", id, (e.initial_options || []).map((o) => o.value)),
  multi_users_select: (e, id) => group(store.state.users.filter((u) => !u.marks.includes("deactivated")).map((u) => ({ value: u.id, text: { type: "plain_text", text: u.real_name, emoji: false } })),
    "checkbox", id, e.initial_users || [], e.max_selected_items),
  unknown: (e, id) => single(h("input", { id, class: "text", disabled: true, value: `(${e.type})` })),
};

const single = (control) => ({ node: control, control, get: () => control.value, set: (v) => { control.value = v; } });

function group(options, type, id, initial, most) {
  const boxes = options.map((o, i) => h("input", { type, name: id, id: `${id}-${i}`, value: o.value, checked: initial.includes(o.value) }));
  const control = h("div", { id, class: "choices", role: type === "radio" ? "radiogroup" : "group", tabindex: "-1" }, options.map((o, i) =>
    h("label", {}, boxes[i], h("span", {}, textObject(o.text), o.description && h("small", {}, plain(o.description))))));
  const picked = () => boxes.filter((b) => b.checked).map((b) => b.value);
  return {
    node: control, control, group: true, get: () => (type === "radio" ? picked()[0] || "" : picked()),
    set: (v) => boxes.forEach((b) => { b.checked = [].concat(v).includes(b.value); }),
    problem: (v) => (most && v.length > most ? `Please choose at most ${most}.` : ""),
  };
}
