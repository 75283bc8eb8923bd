/** A client of the Agent Client Protocol that takes no message which its schema does not allow. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Ajv2020 } from 'ajv/dist/2020.js';

const schema = JSON.parse(
  readFileSync(
    new URL('../../node_modules/@agentclientprotocol/sdk/schema/v1/schema.json', import.meta.url),
    'utf8',
  ),
);
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(schema, 'acp');

/** The definition of the answer to each method that a client calls. */
const answers: Readonly<Record<string, string>> = {
  initialize: 'InitializeResponse',
  'session/new': 'NewSessionResponse',
  'session/load': 'LoadSessionResponse',
  'session/resume': 'ResumeSessionResponse',
  'session/list': 'ListSessionsResponse',
  'session/delete': 'DeleteSessionResponse',
  'session/close': 'CloseSessionResponse',
  'session/set_mode': 'SetSessionModeResponse',
  'session/set_config_option': 'SetSessionConfigOptionResponse',
  'session/prompt': 'PromptResponse',
};

/** The definition of what an agent sends by itself. */
const sent: Readonly<Record<string, string>> = {
  'session/update': 'SessionNotification',
  'session/request_permission': 'RequestPermissionRequest',
  'elicitation/create': 'CreateElicitationRequest',
  '$/cancel_request': 'CancelRequestNotification',
};

// biome-ignore lint/suspicious/noExplicitAny: the schema of the protocol checks what comes in.
type Any = any;
type Json = Record<string, Any>;

export interface Update extends Json {
  sessionUpdate: string;
}

/** An answer that is an error. */
export class AnswerError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class StrictClient {
  readonly child: ChildProcess;
  /** What no schema allows. */
  readonly invalid: string[] = [];
  readonly updates: { sessionId: string; update: Update }[] = [];
  readonly asked: Json[] = [];
  /** Answers what the agent asks. The default is the first option. */
  answer: (method: string, params: Json) => Json | Promise<Json> = (_method, { options }) => ({
    outcome: { outcome: 'selected', optionId: options[0].optionId },
  });
  readonly #waiting = new Map<number, { method: string; take(message: Json): void }>();
  #last = 0;
  #stderr = '';

  constructor(command: readonly [string, ...string[]], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    const [file, ...args] = command;
    this.child = spawn(file, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stderr!.on('data', chunk => {
      this.#stderr += chunk;
    });
    createInterface({ input: this.child.stdout! }).on('line', line => void this.#take(line));
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves with the result. Rejects with AnswerError. */
  request(method: string, params: Json): Promise<Any> {
    const id = ++this.#last;
    const result = new Promise<Any>((resolve, reject) =>
      this.#waiting.set(id, {
        method,
        take: ({ result, error }) =>
          error ? reject(new AnswerError(error.code, error.message)) : resolve(result),
      }),
    );
    this.send({ jsonrpc: '2.0', id, method, params });
    return result;
  }

  notify(method: string, params: Json): void {
    this.send({ jsonrpc: '2.0', method, params });
  }

  send(message: Json): void {
    this.child.stdin!.write(`${JSON.stringify(message)}\n`);
  }

  /** Returns the text of the updates of a kind. */
  said(kind: string, sessionId?: string): string {
    return this.updates
      .filter(one => one.update.sessionUpdate === kind && (!sessionId || one.sessionId === sessionId))
      .map(({ update }) => update['content']?.text ?? '')
      .join('');
  }

  /** Resolves with the exit code once the process has ended after its input. */
  async end(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const closed = once(this.child, 'close');
    this.child.stdin!.end();
    const [code] = await closed;
    return code;
  }

  async #take(line: string): Promise<void> {
    let message: Json;
    try {
      message = JSON.parse(line);
    } catch {
      this.invalid.push(`no JSON: ${line.slice(0, 200)}`);
      return;
    }
    const { id, method, params } = message;
    if (method === undefined) {
      const call = this.#waiting.get(id);
      if (!call) return void this.invalid.push(`an answer to nothing: ${line.slice(0, 200)}`);
      this.#waiting.delete(id);
      if ('result' in message) this.#check(answers[call.method], message['result'], call.method);
      return call.take(message);
    }
    this.#check(sent[method], params, method);
    if (method === 'session/update') this.updates.push(params);
    if (id === undefined) return;
    this.asked.push(params);
    const result = await this.answer(method, params);
    this.send({ jsonrpc: '2.0', id, result });
  }

  #check(definition: string | undefined, value: unknown, method: string): void {
    if (!definition) return void this.invalid.push(`${method} is not in the protocol`);
    const validate = ajv.getSchema(`acp#/$defs/${definition}`)!;
    if (!validate(value)) this.invalid.push(`${method}: ${ajv.errorsText(validate.errors)}`);
  }
}
