// Blocks of messages, modals and home tabs. ctx says where they are shown: {press(element, block, choice), input(block)}.
import { h } from "./dom.js";
import { textObject, plain, mrkdwn } from "./mrkdwn.js";
import { richText, markdownBlock } from "./richtext.js";
import { interactive } from "./elements.js";

// picture shows an image's description: this page loads nothing from elsewhere.
const picture = (e, small) => h("span", { class: small ? "picture small" : "picture", role: "img", "aria-label": e.alt_text, title: e.image_url }, small ? "▣" : ["▣ ", e.alt_text]);

const render = {
  header: (b) => h("h3", { class: "b b-header" }, plain(b.text)),
  divider: () => h("hr", { class: "b" }),
  section: (b, ctx) => h("div", { class: "b b-section" },
    h("div", { class: "b-section-main" },
      b.text && h("div", { class: "tx" }, textObject(b.text)),
      b.fields && h("div", { class: "fields" }, b.fields.map((f) => h("div", { class: "field tx" }, textObject(f))))),
    b.accessory && h("div", { class: "accessory" }, b.accessory.type === "image" ? picture(b.accessory) : interactive(b.accessory, b, ctx))),
  context: (b) => h("div", { class: "b b-context" }, b.elements.map((e) => (e.type === "image" ? picture(e, true) : h("span", { class: "tx" }, textObject(e))))),
  actions: (b, ctx) => h("div", { class: "b b-actions" }, b.elements.map((e) => interactive(e, b, ctx))),
  image: (b) => h("figure", { class: "b" }, b.title && h("figcaption", {}, plain(b.title)), picture(b)),
  markdown: (b) => markdownBlock(b.text),
  rich_text: richText,
  alert: (b) => h("div", { class: "b alert " + (b.level || "default"), role: "note" }, textObject(b.text)),
  input: (b, ctx) => ctx.input ? ctx.input(b) : h("div", { class: "b" }, h("b", {}, plain(b.label)), interactive(b.element, b, ctx)),
};

export function blocks(list, ctx) {
  return (list || []).map((b) => (render[b.type] ? render[b.type](b, ctx) : h("div", { class: "b unknown" }, `(${b.type})`)));
}

// body is what a message shows: its blocks, or else its text.
export const body = (m, ctx) => (m.blocks?.length ? blocks(m.blocks, ctx) : [h("div", { class: "b tx" }, mrkdwn(m.text))]);

