// Search: writes `q` into the address (screens filter by it) and offers the tasks that match.
import { h, icon, isNamed, pill, replace } from "./dom.js";
import { isOut, state } from "./live.js";

const FOUND_AT_MOST = 12;
const narrow = matchMedia("(max-width: 800px)");

export function searchBox({ route, go, select }) {
  const menu = h("div.menu", { id: "found", role: "listbox", hidden: true });
  const field = h("input", {
    class: "field", type: "search", id: "search", autocomplete: "off", role: "combobox",
    aria: { label: "Search", expanded: "false", controls: "found", autocomplete: "list" },
  });
  let at = 0;

  function show() {
    const words = field.value.trim().toLowerCase();
    const tasks = words && state.workflow ? [...state.workflow.tasks.values()] : [];
    const found = tasks.filter((task) => isNamed(task, words));
    at = 0;
    replace(menu, found.slice(0, FOUND_AT_MOST).map((task, index) => h("button", {
      type: "button", role: "option", id: "found-" + index, tabindex: -1, aria: { selected: index === 0 },
      class: "s-" + task.status, on: { mousedown: (event) => event.preventDefault(), click: () => take(task.id) },
    }, pill(task.status), h("span.line-cut.grow", task.name), h("span.muted.small", task.agent))),
    h("p.small", found.length ? `${found.length} found` : "No task matches by name, id, agent or group."));
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
  const node = h("div.search", { role: "search" }, icon("search"), field, menu);
  const update = () => {
    node.hidden = isOut();
    field.placeholder = narrow.matches ? "Find" : route().id ? "Find a task  /" : "Find a workflow  /";
    if (document.activeElement !== field) field.value = route().params.get("q") ?? "";
  };
  update();
  return { node, update };
}
