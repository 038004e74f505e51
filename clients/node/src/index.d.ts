/** The types of `limner-client`. */

export interface ConnectOptions {
  /** The server to start; by default `limner app-server`. */
  command?: string[];
  /** The whole environment of the server; by default that of this process. */
  env?: NodeJS.ProcessEnv;
  /** The folder in which the server starts. */
  cwd?: string;
  /** A running server instead: `ws://…` or `wss://…`. Needs Node 22. */
  url?: string;
  /** The bearer token of a server at a `url`. */
  token?: string;
  /** Asks the user; by default the answer is no. */
  approve?: (request: ApprovalRequest) => boolean | Promise<boolean>;
}

export interface ApprovalRequest {
  kind: "command" | "file_change" | "permissions" | "elicitation";
  text: string;
  threadId?: string;
  /** The params of the server's request. */
  raw: Record<string, unknown>;
}

/** Options of a thread; the other members are those of `thread/start` in the protocol. */
export interface ThreadOptions {
  tools?: Tool[];
  model?: string;
  modelProvider?: string;
  cwd?: string;
  approvalPolicy?: "untrusted" | "on-failure" | "on-request" | "never";
  sandbox?: "read-only" | "workspace-write" | "danger-full-access";
  /** Settings for this thread, such as `{"budget.session_usd": 0.5}`. */
  config?: Record<string, unknown>;
  baseInstructions?: string;
  developerInstructions?: string;
  ephemeral?: boolean;
}

export interface TurnOptions {
  /** Picture files, or the bytes of pictures. */
  images?: (string | Uint8Array)[];
  model?: string;
  effort?: string;
  outputSchema?: Record<string, unknown>;
}

/** A tool of this program. If `run` throws, the model reads the message. */
export interface Tool {
  name: string;
  description: string;
  /** A JSON schema of the arguments; by default an empty object. */
  schema?: Record<string, unknown>;
  run(args: any, call: ToolCallInfo): ToolOutput | Promise<ToolOutput>;
}

export interface ToolCallInfo {
  callId: string;
  turnId: string;
  threadId: string;
}

/** A text, a picture, anything that is JSON, or a list of texts and pictures. */
export type ToolOutput = unknown;

export interface Picture {
  source: string | URL | Uint8Array;
  label?: string;
  detail?: "auto" | "low" | "high" | "original";
}

/** A picture in the output of a tool: a file, or the bytes of one. */
export function picture(source: string | URL | Uint8Array, options?: Omit<Picture, "source">): Picture;

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  reasoning_tokens: number;
}

/** The events of a turn; their types are those of `event.as_json()` in Python. */
export type Event =
  | { type: "turn_started"; turn: string }
  | { type: "input" | "item"; item: Record<string, any> }
  | { type: "text"; item_id: string; text: string }
  | { type: "tool_started"; call_id: string; name: string; arguments: Record<string, any> }
  | ToolFinished
  | { type: "usage"; last: Usage; total: Usage; context_tokens: number | null }
  | { type: "compacting" | "compacted"; item_id: string }
  | { type: "notification"; method: string; params: Record<string, any> }
  | TurnEnded;

export interface ToolFinished {
  type: "tool_finished";
  call_id: string;
  name: string;
  ok: boolean;
  duration_ms: number;
  /** What the tool returned, without its pictures. */
  value: any;
  images: { path: string }[];
  error?: { message: string };
}

/** The last event of a turn; the amounts are there if the server is limner. */
export interface TurnEnded {
  type: "turn_ended";
  turn: string;
  status: "completed" | "interrupted" | "failed";
  text: string;
  cost_usd?: number;
  session_usd?: number;
  error?: { message: string; info: unknown };
}

export interface Thread {
  readonly id: string;
  readonly model: string;
  /** Send a message, and wait for the end of the turn. */
  run(text: string, options?: TurnOptions): Promise<TurnEnded>;
  /** Send a message, and yield the events of the turn. Leaving the loop interrupts the turn. */
  stream(text: string, options?: TurnOptions): AsyncGenerator<Event, void, void>;
  /** Send a message in the middle of the running turn. */
  steer(text: string, options?: Pick<TurnOptions, "images">): Promise<void>;
  /** Stop the running turn, if there is one. */
  interrupt(): Promise<void>;
}

export interface Client {
  /** The name and version that the server gives itself. */
  readonly server: string;
  thread(options?: ThreadOptions): Promise<Thread>;
  /** Resume a thread. Give the same tools as at its start. */
  resume(threadId: string, options?: ThreadOptions): Promise<Thread>;
  fork(threadId: string, options?: ThreadOptions): Promise<Thread>;
  list(params?: { limit?: number; archived?: boolean }): Promise<Record<string, any>[]>;
  /** Send a request for which this class has no method. */
  request(method: string, params?: Record<string, unknown>): Promise<any>;
  /** Close the connection; a server that `connect` has started ends. */
  close(): Promise<void>;
}

/** Start an app-server, or connect to one. */
export function connect(options?: ConnectOptions): Promise<Client>;

/** The server refused a request, or is gone (`code` is "SERVER_GONE"). */
export class ServerError extends Error {
  code?: number | "SERVER_GONE";
  data?: unknown;
}
