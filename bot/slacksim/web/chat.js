// The conversation: messages with their threads, drawn once and again only when they change.
import { h, fill, $ } from "./dom.js";
import { store, act } from "./store.js";
import { body, blocks } from "./blocks.js";
import { when } from "./mrkdwn.js";

let place = "", owner = "", drawn = new Map(), firstDraw = true;
let replyTo = null;

export function avatar(id, name, bot) {
  let n = 0;
  for (const c of id) n = (n * 31 + c.charCodeAt(0)) % 8;
  // What stands in brackets is a remark, and a letter is what an initial is.
  const words = name.replace(/\([^)]*\)/g, " ").match(/[\p{L}\p{N}]+/gu) || [name || "?"];
  const initials = words.slice(0, 2).map((w) => [...w][0]).join("").toUpperCase();
  return h("span", { class: bot ? "avatar bot" : `avatar av${n}`, "aria-hidden": "true" }, bot ? name[0] : initials);
}

const seconds = (ts) => Number(ts.split(".")[0]);
const dayOf = (ts) => new Date(seconds(ts) * 1000).toDateString();

// showChat draws the current place for the current person.
export function showChat() {
  const log = $("log");
  if (place !== store.place || owner !== store.state.me) {
    place = store.place;
    owner = store.state.me;
    drawn = new Map();
    firstDraw = true;
    replyTo = null;
    fill(log);
  }
  $("compose-form").hidden = place === "home";
  if (place === "home") return showHome(log);
  const channel = store.channel(place);
  if (!channel) return fill(log);
  const down = firstDraw || log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const roots = channel.messages.filter((m) => !m.thread_ts || !channel.messages.some((r) => r.ts === m.thread_ts));
  const want = [];
  let day = "", last = null;
  for (const m of roots) {
    if (dayOf(m.ts) !== day) {
      day = dayOf(m.ts);
      want.push(divider(day, m.ts));
      last = null;
    }
    const follows = last && last.user === m.user && !m.ephemeral && !last.ephemeral && seconds(m.ts) - seconds(last.ts) < 300 && !m.bot;
    want.push(message(m, channel, follows));
    last = m;
    const replies = channel.messages.filter((r) => r.thread_ts === m.ts);
    if (replies.length) {
      want.push(thread(m, replies, channel));
      last = null;
    }
  }
  if (!want.length) want.push(keep("empty", 0, () => h("p", { class: "empty" }, h("span", { "aria-hidden": "true" }, "💬"), "Nothing here yet. What the app posts appears by itself.")));
  settle(log, want);
  if (down) log.scrollTop = log.scrollHeight;
  firstDraw = false;
  showReplying(channel);
}

// keep returns the node drawn before under this key, or draws it anew when its revision has changed.
function keep(key, rev, draw, flash = true) {
  const old = drawn.get(key);
  if (old && old.rev === rev) return old.node;
  const focused = old?.node.contains(document.activeElement);
  const node = draw();
  if (!firstDraw && flash) node.classList.add(old ? "flash" : "fresh");
  if (focused) requestAnimationFrame(() => (node.querySelector("button, a, select") || $("compose")).focus());
  drawn.set(key, { rev, node });
  return node;
}

// settle makes the log hold exactly these nodes, moving none that is in place already.
function settle(log, want) {
  const set = new Set(want);
  for (const n of [...log.children]) if (!set.has(n)) n.remove();
  want.forEach((n, i) => { if (log.children[i] !== n) log.insertBefore(n, log.children[i] || null); });
}

const divider = (day, ts) => keep("day " + day, 0, () => h("div", { class: "day", role: "separator" }, h("span", {}, when(seconds(ts), "{day_divider_pretty}", day))), false);

function author(m) {
  if (m.bot) return store.state.app.name;
  return store.user(m.user)?.real_name || m.user;
}

function message(m, channel, follows) {
  return keep(m.ts, `${m.rev} ${follows}`, () => {
    const name = author(m);
    const ctx = { press: (e, block, choice) => act("click", { channel: channel.id, ts: m.ts, block_id: block.block_id, action_id: e.action_id, ...choice }) };
    const article = h("article", { class: "msg" + (follows ? " follows" : "") + (m.ephemeral ? " ephemeral" : ""), "aria-label": `${name}, ${new Date(seconds(m.ts) * 1000).toLocaleTimeString()}` },
      follows ? h("span", { class: "gutter", "aria-hidden": "true" }, when(seconds(m.ts), "{time}", "")) : avatar(m.user, name, m.bot),
      h("div", { class: "msg-main" },
        m.ephemeral && h("div", { class: "only-you" }, h("span", { "aria-hidden": "true" }, "👁 "), "Only visible to you"),
        !follows && h("div", { class: "msg-head" }, h("b", { class: "author" }, name), m.bot && h("span", { class: "tag" }, "APP"), h("span", { class: "at" }, when(seconds(m.ts), "{time}", ""))),
        body(m, ctx),
        m.edited && !m.blocks && h("span", { class: "edited" }, "(edited)")),
      !m.ephemeral && !m.thread_ts && h("button", { class: "reply", "aria-label": "Reply in thread to " + name, title: "Reply in thread", onclick: () => reply(m, channel) }, "↩"));
    return article;
  });
}

function thread(root, replies, channel) {
  const rev = replies.map((r) => r.rev).join(" ");
  const open = drawn.get("thread " + root.ts)?.node.open ?? true;
  return keep("thread " + root.ts, rev, () => h("details", { class: "thread", open },
    h("summary", {}, `${replies.length} ${replies.length === 1 ? "reply" : "replies"}`),
    replies.map((r) => message(r, channel, false))), false);
}

function reply(m, channel) {
  replyTo = m.ts;
  showReplying(channel);
  $("compose").focus();
}

function showReplying(channel) {
  const box = $("replying");
  const m = replyTo && channel.messages.find((x) => x.ts === replyTo);
  box.hidden = !m;
  if (m) fill(box, `Replying to ${author(m)} in the thread `, h("button", { type: "button", class: "plain", onclick: () => { replyTo = null; showReplying(channel); } }, "Cancel"));
}

function showHome(log) {
  const view = store.state.home;
  const ctx = { press: (e, block, choice) => act("view", { view_id: view.id, block_id: block.block_id, action_id: e.action_id, ...choice }) };
  settle(log, [keep("home", view ? view.rev : 0, () => view
    ? h("div", { class: "home" }, blocks(view.blocks, ctx))
    : h("p", { class: "empty" }, h("span", { "aria-hidden": "true" }, "🏠"), "The app has not published a home tab for this person."))]);
  firstDraw = false;
}

// send posts what was typed: a command, a message, or a reply.
export async function send(text) {
  const thread = text.startsWith("/") ? null : replyTo;
  const ok = await act("say", { channel: store.place, text, ts: thread || "" });
  if (ok && thread) { replyTo = null; $("replying").hidden = true; }
  return ok;
}
