// The sidebar, the people switcher and the demo panel.
import { h, fill, $ } from "./dom.js";
import { store, act } from "./store.js";
import { avatar } from "./chat.js";

const readKey = (channel) => `read ${store.state.me} ${channel}`;

function unread(c) {
  const read = sessionStorage.getItem(readKey(c.id)) || "";
  return c.messages.filter((m) => m.ts > read && m.user !== store.state.me).length;
}

// markRead notes that the open channel was seen, unless the page is in the background.
export function markRead() {
  const c = store.channel(store.place);
  const last = c?.messages[c.messages.length - 1];
  if (last && !document.hidden) sessionStorage.setItem(readKey(c.id), last.ts);
}

export function showNav(go) {
  const { team, app, channels } = store.state;
  $("team-name").textContent = team.name;
  $("team-badge").textContent = team.name[0];
  const item = (place, sign, name, count) => h("li", {}, h("button", {
    class: "nav-item" + (count ? " unread" : ""), "data-place": place, "aria-current": store.place === place ? "page" : undefined, onclick: () => go(place),
  }, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", { class: "nav-name" }, name), count > 0 && h("span", { class: "count", "aria-label": `${count} unread` }, count > 99 ? "99+" : count)));
  const focused = document.activeElement?.dataset?.place;
  fill($("nav"),
    h("h2", {}, "Channels"),
    h("ul", {}, channels.filter((c) => c.kind === "channel").map((c) => item(c.id, c.private ? "🔒" : "#", c.name, unread(c)))),
    h("h2", {}, "Apps"),
    h("ul", {}, item("home", "⌂", app.name + " · Home", 0), channels.filter((c) => c.kind === "im").map((c) => item(c.id, "●", app.name, unread(c)))));
  if (focused) $("nav").querySelector(`[data-place="${CSS.escape(focused)}"]`)?.focus();
  let waiting = 0;
  for (const c of channels) if (c.id !== store.place) waiting += unread(c);
  const here = store.channel(store.place);
  const title = store.place === "home" ? "Home" : here ? (here.kind === "im" ? here.name : "#" + here.name) : "";
  document.title = (waiting ? `(${waiting}) ` : "") + `${title} · ${team.name} · Slack simulator`;
  fill($("where"), store.place === "home" ? app.name : here ? [here.kind === "channel" && h("span", { class: "hash" }, here.private ? "🔒 " : "# "), here.name] : "");
  $("topic").textContent = store.place === "home" ? "Home tab" : here?.topic || "";
  $("compose").placeholder = here ? `Message ${here.kind === "im" ? here.name : "#" + here.name}, or /approvals help` : "";
}

const about = (u) => [u.groups.map((g) => h("span", { class: "chip" }, "@" + g)), u.marks.map((m) => h("span", { class: "chip mark" }, m))];

export function showPeople(become) {
  const me = store.user(store.state.me);
  if (!me) return fill($("me"), "Nobody here yet");
  fill($("me"), avatar(me.id, me.real_name), h("span", { class: "me-text" }, h("span", { class: "me-label" }, "You are"), h("b", {}, me.real_name)), h("span", { "aria-hidden": "true" }, "▾"));
  $("me").setAttribute("aria-label", `You are ${me.real_name}. Switch person`);
  const people = $("people");
  const had = people.contains(document.activeElement) && document.activeElement.dataset.user;
  fill(people, h("h2", {}, "You are"), store.state.users.map((u) => h("button", {
    class: "person", "data-user": u.id, "aria-pressed": String(u.id === me.id), autofocus: u.id === me.id,
    onclick: () => { people.hidePopover(); become(u.id); $("me").focus(); },
  }, avatar(u.id, u.real_name), h("span", { class: "person-text" }, h("b", {}, u.real_name), h("span", { class: "handle" }, "@" + u.name + " · " + u.id), h("span", { class: "chips" }, about(u))),
  u.id === me.id && h("span", { class: "tick", "aria-hidden": "true" }, "✓"))));
  if (had) people.querySelector(`[data-user="${CSS.escape(had)}"]`)?.focus();
}

// The list opens under the button that says who one is, and never over the window's edge: on a phone the button is in its middle.
function placePeople() {
  const edge = 8;
  const width = Math.min(340, innerWidth - 2 * edge); // as its style has it
  const right = Math.max(edge, innerWidth - $("me").getBoundingClientRect().right);
  $("people").style.right = Math.min(right, innerWidth - width - edge) + "px";
}
$("people").addEventListener("beforetoggle", placePeople);
addEventListener("resize", placePeople);

let lastPanel = "";
export function showPanel() {
  const p = store.state.panel;
  const panel = $("panel");
  panel.hidden = !p;
  $("panel-toggle").hidden = !p;
  $("app").classList.toggle("with-panel", Boolean(p));
  const now = JSON.stringify(p || null);
  if (!p || now === lastPanel) return;
  const before = lastPanel ? JSON.parse(lastPanel) : null;
  lastPanel = now;
  const changed = (item) => before && !before.items?.some((b) => b.label === item.label && b.value === item.value);
  fill(panel, h("h2", {}, p.title), h("dl", {}, (p.items || []).map((i) => h("div", { class: "stat " + (i.tone || "") + (changed(i) ? " flash" : "") }, h("dt", {}, i.label), h("dd", {}, i.value)))),
    h("div", { class: "panel-actions" }, (p.actions || []).map((a) => {
      const b = h("button", { class: "btn", onclick: async () => { b.setAttribute("aria-busy", "true"); await act("panel", { id: a.id }); b.removeAttribute("aria-busy"); } }, a.label);
      return b;
    })));
}
