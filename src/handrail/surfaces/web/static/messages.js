// Threads between agents and the person; an open thread has a box to answer.
import { button, h, icon, when } from "./dom.js";
import { action, asking, entry, listing, taskLink } from "./listing.js";

export function screen(ctx) {
  const thread = () => ctx.param("thread");
  const may = ctx.decides;
  const isMine = (id) => id === "human"; // the person's inbox, no matter who is signed in
  const read = (message, ack) => ctx.api.post(`/api/messages/${message.id}/read`, { ack });

  /** Answers go to the last other writer or, if only the person wrote, to their recipient. */
  function foot({ messages }, refresh) {
    const last = messages?.findLast((message) => !isMine(message.sender_id)) ?? messages?.at(-1);
    if (!last || !may) return null;
    const [id, name] = isMine(last.sender_id) ? [last.recipient_id, last.recipient] : [last.sender_id, last.sender];
    const send = (body) => ctx.api.post("/api/messages", { recipient_id: id, body, reply_to: last.id });
    return asking("Reply", `To ${name}`, send, refresh, "primary");
  }

  /** Opening a thread marks it as read; messages to be acknowledged still wait for that. */
  function head({ messages }) {
    if (!messages) return null;
    const unread = messages.filter((message) => may && isMine(message.recipient_id) && !message.read_at);
    unread.forEach((message) => read(message, false).catch(() => {}));
    return h("div.row", button("All threads", () => ctx.go({ thread: null })), h("h2", messages[0]?.subject));
  }

  function drawThread(each) {
    return entry(
      [button([icon("message"), h("span", each.subject || "No subject")], () => ctx.go({ thread: each.id }), "link"),
        each.unread > 0 && h("span.badge", `${each.unread} new`)],
      [each.with.join(", "), each.count === 1 ? "1 message" : `${each.count} messages`, when(each.last.created_at)],
      h("p.muted.line-cut", { title: each.last.body }, `${each.last.sender}: ${each.last.body}`));
  }

  function drawMessage(message, refresh) {
    const owed = message.requires_ack && !message.acked_at;
    return entry(
      [h("b", message.sender), h("span.muted", `to ${message.recipient}`), taskLink(ctx, message.task_id, undefined, message.workflow_id)],
      [when(message.created_at), message.type, message.priority !== "normal" && message.priority,
        owed ? "needs to be acknowledged" : message.acked_at && ["acknowledged ", when(message.acked_at)]],
      h("p.prose", message.body),
      owed && may && isMine(message.recipient_id) &&
        h("div.row", action("Acknowledge", () => read(message, true).then(refresh))));
  }

  function path() {
    const query = new URLSearchParams(thread() ? { thread: thread() } : ctx.id ? { workflow: ctx.id } : {});
    return `/api/messages?${query}`;
  }

  return listing(ctx, {
    path,
    topics: ["messages"],
    items: (found) => found.messages ?? found.threads,
    head,
    foot,
    empty: ["No messages yet. Agents write to each other and to you. To write to one, open the Agents tab.", "handrail message"],
    draw: (item, refresh) => (item.body === undefined ? drawThread(item) : drawMessage(item, refresh)),
  });
}
