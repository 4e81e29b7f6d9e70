// The bar on top: where we are, how it stands, search, and whether what is shown is true.
import { bar, h, icon, iconButton, pill, replace } from "./dom.js";
import { state } from "./live.js";
import { bell } from "./needs.js";
import { about } from "./keys.js";

const FOUND_AT_MOST = 12;

function toggleTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const next = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
  if (next === system) {
    delete root.dataset.theme;
    localStorage.removeItem("handrail-theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("handrail-theme", next);
  }
}

function connection() {
  const looks = { live: "ok", connecting: "pending", reconnecting: "waiting" }[state.connection] ?? "failed";
  const since = state.connection === "offline" ? " since " + new Date(state.since).toLocaleTimeString([], { timeStyle: "short" }) : "";
  const told = state.connection === "live" ? "What you see is up to date" : "What you see may be old";
  return h("span", { class: "connection s-" + looks, title: told, data: { state: state.connection } }, state.connection.replace("-", " ") + since);
}

/** The title is a native list of the workflows, laid invisibly over the name. */
function switcher(row, go) {
  const others = [...new Map([...state.workflows, [row.id, row]]).values()]; // a closed one may be open here
  const list = h("select", { aria: { label: "Workflow" }, on: { change: () => go({ id: list.value }) } },
    others.map((one) => h("option", { value: one.id }, `${one.name} (${one.finished}/${one.total}${one.waiting ? ", waits for you" : ""})`)));
  list.value = row.id;
  return h("span", { class: "switcher" }, h("h1", { class: "line-cut" }, row.name), icon("down"), list);
}

function standing(row) {
  const count = (number, word, looks) => (number ? h("span", { class: "s-" + looks }, `${number} ${word}`) : null);
  return [
    pill(row.status),
    row.total ? [bar(row.finished, row.total, row.failed), h("span", { class: "number" }, `${row.finished}/${row.total}`)] : null,
    h("span", { class: "counts" }, count(row.failed, "failed", "failed"), count(row.stuck, "stuck", "failed"),
      count(row.running, "running", "in_progress"), count(row.ready, "ready", "pending"), count(row.blocked, "blocked", "blocked")),
  ];
}

/** Search: writes `q` into the address (screens filter by it) and offers the tasks that match. */
function searchBox({ route, go, select }) {
  const menu = h("div", { class: "menu", id: "found", role: "listbox", hidden: true });
  const field = h("input", {
    class: "field", type: "search", id: "search", autocomplete: "off", role: "combobox",
    aria: { label: "Search", expanded: "false", controls: "found", autocomplete: "list" },
  });
  let at = 0;

  function show() {
    const words = field.value.trim().toLowerCase();
    const tasks = words && state.workflow ? [...state.workflow.tasks.values()] : [];
    const found = tasks.filter((task) => `${task.name} ${task.id} ${task.agent ?? ""}`.toLowerCase().includes(words));
    at = 0;
    replace(menu, found.slice(0, FOUND_AT_MOST).map((task, index) => h("button", {
      type: "button", role: "option", id: "found-" + index, tabindex: -1, aria: { selected: String(index === 0) },
      class: "s-" + task.status, on: { mousedown: (event) => event.preventDefault(), click: () => take(task.id) },
    }, pill(task.status), h("span", { class: "line-cut grow" }, task.name), h("span", { class: "muted small" }, task.agent))),
    h("p", { class: "small" }, found.length ? `${found.length} found` : "No task has this in its name, id or agent."));
    open(Boolean(words && state.workflow));
  }

  function open(is) {
    menu.hidden = !is;
    field.setAttribute("aria-expanded", is);
  }

  function take(id) {
    open(false);
    select(id);
  }

  function move(step) {
    const options = menu.querySelectorAll("button");
    options[at]?.setAttribute("aria-selected", "false");
    at = (at + step + options.length) % (options.length || 1);
    options[at]?.setAttribute("aria-selected", "true");
    options[at]?.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", "found-" + at);
  }

  function press(event) {
    const run = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: () => (menu.hidden ? document.querySelector("#main a")?.focus() : menu.querySelectorAll("button")[at]?.click()),
      Escape: () => (menu.hidden ? go({ q: (field.value = ""), quiet: true }) : open(false)),
    }[event.key];
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }

  field.addEventListener("input", () => {
    show();
    go({ q: field.value.trim(), quiet: true });
  });
  field.addEventListener("keydown", press);
  field.addEventListener("blur", () => open(false));
  const update = () => {
    field.placeholder = route().id ? "Find a task  /" : "Find a workflow  /";
    if (document.activeElement !== field) field.value = route().params.get("q") ?? "";
  };
  return { node: h("div", { class: "search", role: "search" }, icon("search"), field, menu), update };
}

export function topBar(node, shell) {
  const search = searchBox(shell);
  const place = h("div", { class: "row place" });
  const live = h("span", { role: "status" });
  replace(node, h("a", { class: "brand", href: "#/", title: "All workflows (g h)" }, icon("home"), h("span", {}, "Handrail")),
    place, search.node, bell(), iconButton("sun", "Light or dark", toggleTheme), iconButton("more", "Keys, devices, sign out (?)", about), live);
  let drawn = "";
  return {
    update() {
      const row = shell.route().id ? state.workflow?.workflow : null;
      const known = JSON.stringify([row, state.connection, state.needs.length, [...state.workflows.keys()]]);
      search.update();
      search.node.hidden = state.connection === "signed-out";
      if (known === drawn) return;
      drawn = known;
      if (!place.contains(document.activeElement)) replace(place, row ? [switcher(row, shell.go), standing(row)] : h("h1", { class: "sr" }, "All workflows"));
      replace(live, connection());
      const waiting = state.needs.length ? `(${state.needs.length}) ` : "";
      document.title = waiting + [row?.name ?? state.session?.project_name, "Handrail"].filter(Boolean).join(" · ");
    },
  };
}
