/**
 * Notifications of a server -> the events of a turn.
 *
 * Their types and members are those of `event.as_json()` in Python.
 */

// A tool that a server runs has an item of its own type: the tool's name, and its arguments.
const SERVER_TOOLS = {
  imageGeneration: ["image_generate", ["revisedPrompt"]],
  imageView: ["inspect_image", ["path"]],
  commandExecution: ["shell", ["command", "cwd"]],
  fileChange: ["apply_patch", ["changes"]],
  webSearch: ["web_search", ["query"]],
};

/** The event that a notification reports; undefined if it reports none. */
export function readEvent(method, params) {
  switch (method) {
    case "turn/started":
      return { type: "turn_started", turn: params.turn.id };
    case "item/agentMessage/delta":
      return { type: "text", item_id: params.itemId, text: params.delta };
    case "item/started":
      return readItem(params.item, false);
    case "item/completed":
      return readItem(params.item, true);
    case "thread/tokenUsage/updated":
      return readUsage(params.tokenUsage);
    default:
      return { type: "notification", method, params };
  }
}

/** The last event of a turn; `spend` is what the server has said about its cost. */
export function readEnd(turn, items, spend) {
  const messages = items.filter((item) => item.type === "agentMessage");
  const last =
    messages.findLast((item) => item.phase === "final_answer") ??
    messages.findLast((item) => item.phase == null);
  const ended = { type: "turn_ended", turn: turn.id, status: turn.status, text: last?.text ?? "" };
  if (spend) Object.assign(ended, { cost_usd: spend.turnCostUsd, session_usd: spend.threadCostUsd });
  if (turn.error) ended.error = { message: turn.error.message, info: turn.error.codexErrorInfo };
  return ended;
}

function readItem(item, isDone) {
  if (item.type === "contextCompaction") {
    return { type: isDone ? "compacted" : "compacting", item_id: item.id };
  }
  const call = readCall(item);
  if (call !== undefined) return isDone ? readFinished(call, item) : readStarted(call);
  if (!isDone) return undefined;
  return { type: item.type === "userMessage" ? "input" : "item", item };
}

function readCall(item) {
  if (item.type === "dynamicToolCall" || item.type === "mcpToolCall") {
    return { call_id: item.id, name: item.tool, arguments: item.arguments ?? {} };
  }
  if (!(item.type in SERVER_TOOLS)) return undefined;
  const [name, members] = SERVER_TOOLS[item.type];
  const given = members.filter((member) => item[member] != null);
  const entries = given.map((member) => [member, item[member]]);
  return { call_id: item.id, name, arguments: Object.fromEntries(entries) };
}

function readStarted(call) {
  return { type: "tool_started", ...call };
}

function readFinished({ call_id, name }, item) {
  const ok = item.status !== "failed" && item.status !== "declined" && item.success !== false;
  const value = outputText(item);
  return {
    type: "tool_finished",
    call_id,
    name,
    ok,
    duration_ms: item.durationMs ?? 0,
    value: ok ? value : null,
    images: item.savedPath ? [{ path: item.savedPath }] : [],
    ...(ok ? {} : { error: { message: value || "The tool failed." } }),
  };
}

/** The output of a tool, without its pictures. */
function outputText(item) {
  if (item.type === "imageGeneration") {
    return item.savedPath ? { path: item.savedPath, prompt_used: item.revisedPrompt } : null;
  }
  if (typeof item.aggregatedOutput === "string") return item.aggregatedOutput;
  const parts = item.contentItems ?? item.result?.content ?? [];
  return [...parts.map((part) => part.text), item.error?.message]
    .filter((text) => typeof text === "string")
    .join("\n");
}

function readUsage({ last, total, modelContextWindow }) {
  return {
    type: "usage",
    last: readTokens(last),
    total: readTokens(total),
    context_tokens: modelContextWindow ?? null,
  };
}

function readTokens(tokens) {
  return {
    input_tokens: tokens.inputTokens,
    output_tokens: tokens.outputTokens,
    cache_read_tokens: tokens.cachedInputTokens,
    reasoning_tokens: tokens.reasoningOutputTokens,
  };
}
