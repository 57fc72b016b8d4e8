// The page: a stream of states in, acts out.
import { $ } from "./dom.js";
import { store, listen } from "./store.js";
import { showChat, send } from "./chat.js";
import { showNav, showPeople, showPanel, markRead } from "./nav.js";
import { showModal } from "./modal.js";
import { act } from "./store.js";

function show() {
  const { channels } = store.state;
  if (store.place !== "home" && !store.channel(store.place)) store.place = channels[0]?.id || "home";
  store.remember();
  markRead();
  showNav(go);
  showPeople(become);
  showPanel();
  showChat();
  showModal();
}

function go(place) {
  store.place = place;
  drawer(false);
  show();
  if (place === "home") act("home", {});
  else $("compose").focus();
}

function become(id) {
  store.as = id;
  store.remember();
  listen(show, online);
}

const online = (up) => { $("offline").hidden = up; };

function drawer(open) {
  $("app").classList.toggle("drawer", open);
  $("menu").setAttribute("aria-expanded", String(open));
}

$("menu").addEventListener("click", () => {
  drawer(!$("app").classList.contains("drawer"));
  if ($("app").classList.contains("drawer")) $("nav").querySelector("button")?.focus();
});
$("panel-toggle").addEventListener("click", () => {
  const open = $("app").classList.toggle("panel-open");
  $("panel-toggle").setAttribute("aria-expanded", String(open));
});
addEventListener("keydown", (e) => {
  if (e.key === "Escape") drawer(false);
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && store.state) show(); });

// The last things sent come back by the arrow keys, as in a shell.
const sent = [];
let at = 0;
$("compose").addEventListener("keydown", (e) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
  if (!step || !sent.length) return;
  e.preventDefault();
  at = Math.max(0, Math.min(sent.length, at + step));
  $("compose").value = sent[at] || "";
});
$("compose-form").addEventListener("submit", async (e) => {
  e.preventDefault();
  const input = $("compose");
  const text = input.value.trim();
  if (!text) return;
  input.value = "";
  sent.push(text);
  at = sent.length;
  if (!(await send(text)) && !input.value) input.value = text;
});

become(store.as);
