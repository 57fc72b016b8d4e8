// store holds the last state from the stream, and who the visitor is.
import { toast } from "./dom.js";

const emoji = new Map(Object.entries(await (await fetch("/assets/emoji.json")).json()));

export const store = {
  state: null,
  as: sessionStorage.getItem("as") || "",
  place: sessionStorage.getItem("place") || "", // a channel id, or "home"
  emoji: (code) => emoji.get(code),
  user: (id) => store.state.users.find((u) => u.id === id),
  group: (id) => store.state.groups.find((g) => g.id === id),
  channel: (id) => store.state.channels.find((c) => c.id === id),
  remember() {
    sessionStorage.setItem("as", store.as);
    sessionStorage.setItem("place", store.place);
  },
};

// act sends what the person did; what went wrong is shown, and the answer tells whether it went right.
export async function act(kind, fields) {
  try {
    const r = await fetch("/page/act", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ kind, as: store.state.me, ...fields }),
    });
    const answer = await r.json();
    if (answer.error) toast(answer.error.replace(/^slacksim: /, ""));
    return !answer.error;
  } catch {
    toast("The simulator did not answer.");
    return false;
  }
}

// listen keeps the stream of the current person open and calls show with every state.
let source;
export function listen(show, online) {
  source?.close();
  source = new EventSource("/page/stream?as=" + encodeURIComponent(store.as));
  source.addEventListener("open", () => online(true));
  source.addEventListener("error", () => online(false));
  source.addEventListener("state", (e) => {
    store.state = JSON.parse(e.data);
    store.as = store.state.me;
    show();
  });
}
