// The rich_text and markdown blocks.
import { h, anchor } from "./dom.js";
import { emojiNode, person, groupMention, channelMention, when } from "./mrkdwn.js";

const leaf = {
  text: (e) => e.text,
  link: (e) => anchor(e.url, e.text || e.url),
  user: (e) => person(e.user_id),
  usergroup: (e) => groupMention(e.usergroup_id),
  channel: (e) => channelMention(e.channel_id),
  emoji: (e) => emojiNode(e.name),
  broadcast: (e) => h("span", { class: "mention self" }, "@" + e.range),
  date: (e) => when(Number(e.timestamp), e.format, e.fallback, e.url),
};

function piece(e) {
  let node = leaf[e.type] ? leaf[e.type](e) : "";
  const s = e.style || {};
  if (s.code) node = h("code", {}, node);
  if (s.bold) node = h("b", {}, node);
  if (s.italic) node = h("i", {}, node);
  if (s.strike) node = h("s", {}, node);
  if (s.underline) node = h("u", {}, node);
  return node;
}

const pieces = (list) => (list || []).map(piece);

const part = {
  rich_text_section: (e) => h("div", { class: "rt" }, pieces(e.elements)),
  rich_text_preformatted: (e) => h("pre", { class: "pre", tabindex: "0" }, pieces(e.elements)),
  rich_text_quote: (e) => h("blockquote", {}, pieces(e.elements)),
  rich_text_list: (e) => h(e.style === "ordered" ? "ol" : "ul", { class: `rt-list indent-${e.indent || 0}`, start: e.style === "ordered" && e.offset ? e.offset + 1 : undefined },
    e.elements.map((s) => h("li", {}, pieces(s.elements)))),
};

export const richText = (block) => h("div", { class: "b b-rich" }, block.elements.map((e) => (part[e.type] ? part[e.type](e) : "")));

// markdownBlock covers what the markdown block is used for: headings, lists, quotes, fences, and inline styles.
export function markdownBlock(text) {
  const out = [];
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    let m;
    if (/^```/.test(line)) {
      const code = [];
      for (i++; i < lines.length && !/^```/.test(lines[i]); i++) code.push(lines[i]);
      out.push(h("pre", { class: "pre", tabindex: "0" }, code.join("\n")));
    } else if ((m = /^(#{1,6}) +(.*)/.exec(line))) out.push(h("div", { class: "md-h", role: "heading", "aria-level": String(m[1].length + 2) }, markdownSpans(m[2])));
    else if ((m = /^> ?(.*)/.exec(line))) out.push(h("blockquote", {}, markdownSpans(m[1])));
    else if (/^(---+|\*\*\*+)$/.test(line)) out.push(h("hr"));
    else if (/^\s*([-*+]|\d+\.) /.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items = [];
      for (; i < lines.length && (m = /^\s*(?:[-*+]|\d+\.) (.*)/.exec(lines[i])); i++) items.push(h("li", {}, markdownSpans(m[1])));
      i--;
      out.push(h(ordered ? "ol" : "ul", { class: "rt-list" }, items));
    } else if (line.trim()) out.push(h("div", { class: "rt" }, markdownSpans(line)));
  }
  return h("div", { class: "b b-rich" }, out);
}

function markdownSpans(text) {
  const out = [];
  let last = 0;
  for (const m of text.matchAll(/`([^`]+)`|\*\*(.+?)\*\*|~~(.+?)~~|\*([^*]+)\*|_([^_]+)_|\[([^\]]*)\]\(([^()\s]+)\)/g)) {
    out.push(text.slice(last, m.index));
    last = m.index + m[0].length;
    if (m[1] !== undefined) out.push(h("code", {}, m[1]));
    else if (m[2] !== undefined) out.push(h("b", {}, markdownSpans(m[2])));
    else if (m[3] !== undefined) out.push(h("s", {}, markdownSpans(m[3])));
    else if (m[6] !== undefined) out.push(anchor(m[7], m[6]));
    else out.push(h("i", {}, markdownSpans(m[4] ?? m[5])));
  }
  out.push(text.slice(last));
  return out;
}
