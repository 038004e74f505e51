/** A server's request for approval -> a question for the user, and the server's response. */

const decision = (allowed) => ({ decision: allowed ? "accept" : "decline" });
// Earlier releases of Codex had the word `denied`. They read another form as a denial, too.
const denied = { denied: { rejection: "The user said no." } };
const review = (allowed) => ({ decision: allowed ? "approved" : denied });
const permissions = (allowed, { permissions }) => ({
  permissions: allowed ? permissions : {},
  scope: "turn",
});

// Approval alone cannot fill in the required fields of a form.
function elicitation(allowed, { mode, requestedSchema }) {
  return allowed && mode === "form" && !requestedSchema?.required?.length
    ? { action: "accept", content: {} }
    : { action: "decline", content: null };
}

const METHODS = {
  "item/commandExecution/requestApproval": ["command", decision],
  "item/fileChange/requestApproval": ["file_change", decision],
  "item/permissions/requestApproval": ["permissions", permissions],
  "mcpServer/elicitation/request": ["elicitation", elicitation],
  execCommandApproval: ["command", review],
  applyPatchApproval: ["file_change", review],
};

/** Whether a request of the server asks for approval. */
export function isApproval(method) {
  return Object.hasOwn(METHODS, method);
}

/** Ask the user what the server asks; returns the response in the server's form. */
export async function respond(method, params, approve) {
  const [kind, response] = METHODS[method];
  const text = params.reason ?? params.message ?? params.description ?? "";
  const request = {
    kind,
    text: [text, params.command].filter(Boolean).join(" "),
    threadId: params.threadId ?? params.conversationId,
    raw: params,
  };
  return response((await approve(request)) === true, params);
}
