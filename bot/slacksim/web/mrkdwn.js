// Slack's text: mrkdwn with <control sequences>, plain text, and dates. Every function returns nodes.
import { h, anchor } from "./dom.js";
import { store } from "./store.js";

const unescape = (s) => s.replace(/&(amp|lt|gt);/g, (_, e) => ({ amp: "&", lt: "<", gt: ">" })[e]);

// words resolves the entities and, unless told not to, the :codes:.
function words(s, emoji = true) {
  const text = unescape(s);
  if (!emoji) return [text];
  return text.split(/(:[a-z0-9_+'-]+:)/g).map((part) => {
    const found = part.length > 2 && store.emoji(part.slice(1, -1));
    return found ? emojiNode(part.slice(1, -1), found) : part;
  });
}

export function emojiNode(name, unicode) {
  const found = unicode || store.emoji(name);
  return found ? h("span", { class: "emoji", role: "img", "aria-label": name.replaceAll("_", " ") }, found) : `:${name}:`;
}

export function plain(object) {
  if (!object) return [];
  return words(object.text, object.emoji !== false);
}

export const plainString = (object) => plain(object).map((n) => (n instanceof Node ? n.textContent : n)).join("");

export function textObject(object) {
  if (!object) return [];
  return object.type === "mrkdwn" ? mrkdwn(object.text) : plain(object);
}

export function person(id) {
  const u = store.user(id);
  const name = u ? u.real_name : id === store.state.app.user ? store.state.app.name : id;
  return h("span", { class: "mention" + (id === store.state.me ? " self" : "") }, "@" + name);
}

export function groupMention(id, fallback) {
  const g = store.group(id);
  const mine = g?.members.includes(store.state.me);
  return h("span", { class: "mention" + (mine ? " self" : "") }, g ? "@" + g.handle : fallback || id);
}

export const channelMention = (id, fallback) => h("span", { class: "mention" }, "#" + (store.channel(id)?.name || fallback || id));

const inline = /```\n?([\s\S]+?)\n?```|`([^`\n]+)`|<([^<>\n]+)>|(?<![\p{L}\p{N}*])\*(?!\s)([^*\n]*?[^*\s])\*(?![\p{L}\p{N}*])|(?<![\p{L}\p{N}_])_(?!\s)([^_\n]*?[^_\s])_(?![\p{L}\p{N}_])|(?<![\p{L}\p{N}~])~(?!\s)([^~\n]*?[^~\s])~(?![\p{L}\p{N}~])/gu;

function spans(text) {
  const out = [];
  let last = 0;
  for (const m of text.matchAll(inline)) {
    out.push(...words(text.slice(last, m.index)));
    last = m.index + m[0].length;
    if (m[1] !== undefined) out.push(h("pre", { class: "pre" }, unescape(m[1])));
    else if (m[2] !== undefined) out.push(h("code", {}, unescape(m[2])));
    else if (m[3] !== undefined) out.push(control(m[3]));
    else if (m[4] !== undefined) out.push(h("b", {}, spans(m[4])));
    else if (m[5] !== undefined) out.push(h("i", {}, spans(m[5])));
    else out.push(h("s", {}, spans(m[6])));
  }
  out.push(...words(text.slice(last)));
  return out;
}

// mrkdwn renders quotes by line and everything else in place; line breaks show by white-space: pre-wrap.
export function mrkdwn(text) {
  const out = [];
  let run = [], quote = [];
  const flushRun = () => { if (run.length) out.push(...spans(run.join("\n"))); run = []; };
  const flushQuote = () => { if (quote.length) out.push(h("blockquote", {}, spans(quote.join("\n")))); quote = []; };
  const fenced = text.includes("```");
  for (const line of text.split("\n")) {
    if (!fenced && /^(&gt;|>)/.test(line)) { flushRun(); quote.push(line.replace(/^(&gt;|>) ?/, "")); }
    else { flushQuote(); run.push(line); }
  }
  flushRun();
  flushQuote();
  return out;
}

// control renders what stands in < >: a mention, a date, a broadcast or a link.
function control(body) {
  const bar = body.indexOf("|");
  const head = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? "" : unescape(body.slice(bar + 1));
  if (head.startsWith("@")) return person(head.slice(1));
  if (head.startsWith("#")) return channelMention(head.slice(1), label);
  if (head.startsWith("!date^")) {
    const [, seconds, format, link] = head.split("^");
    return when(Number(seconds), format, label, link);
  }
  if (head.startsWith("!subteam^")) return groupMention(head.slice(9), label);
  if (/^!(here|channel|everyone)$/.test(head)) return h("span", { class: "mention self" }, "@" + head.slice(1));
  if (head.startsWith("!")) return label || head;
  return anchor(unescape(head), label ? words(label) : unescape(head).replace(/^mailto:/, ""));
}

// when formats a timestamp by Slack's tokens in the visitor's own zone.
export function when(seconds, format, fallback, link) {
  const d = new Date(seconds * 1000);
  if (!Number.isFinite(seconds) || Number.isNaN(d.getTime())) return fallback || "";
  const day = (opts) => d.toLocaleDateString([], opts);
  const relative = (other) => {
    const today = new Date();
    const days = Math.round((new Date(d).setHours(0, 0, 0, 0) - today.setHours(0, 0, 0, 0)) / 864e5);
    return { 0: "today", 1: "tomorrow", "-1": "yesterday" }[days] || other;
  };
  const short = { year: "numeric", month: "short", day: "numeric" }, long = { ...short, month: "long" }, full = { ...long, weekday: "long" };
  const tokens = {
    date_num: () => `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, "0")}-${String(d.getDate()).padStart(2, "0")}`,
    date: () => day(long), date_short: () => day(short), date_long: () => day(full),
    date_pretty: () => relative(day(long)), date_short_pretty: () => relative(day(short)), date_long_pretty: () => relative(day(full)),
    date_slash: () => day({}), date_long_full: () => day(full), day_divider_pretty: () => relative(day({ weekday: "long", month: "long", day: "numeric" })),
    time: () => d.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" }),
    time_secs: () => d.toLocaleTimeString([], { hour: "numeric", minute: "2-digit", second: "2-digit" }),
    ago: () => ago((Date.now() - d) / 1000),
  };
  const text = unescape(format).replace(/\{(\w+)\}/g, (all, token) => (tokens[token] ? tokens[token]() : all));
  const node = h("time", { datetime: d.toISOString(), title: d.toLocaleString() }, text);
  return link ? anchor(unescape(link), node) : node;
}

function ago(seconds) {
  const f = new Intl.RelativeTimeFormat([], { numeric: "auto" });
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return f.format(-Math.round(seconds / size), unit);
  }
  return f.format(-Math.round(seconds), "second");
}
