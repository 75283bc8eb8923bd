/** Asks the person what an MCP server wants in the middle of a call: to fill in a form, to open an address, or to ask the model. */
import { answers, readForm, secretAskedFor } from '@telos/protocol/form';
import type { RunEvent, ToolCall } from '@telos/protocol/run';
import { asMessage, beginningOf, type Sentence, sentence, shortened, spoken } from '@telos/protocol/text';
import { hostKind, isNeverReached } from '../addresses.ts';
import { untilAborted } from '../cancellation.ts';
import type { Human } from '../core/ports.ts';
import { QuestionOver } from '../human.ts';
import type { Ask } from '../policy/decision.ts';
import type { ServerAnswer, ServerWish, ToolContext } from '../tools/tool.ts';
import { type ApprovalContext, askPerson } from './approval.ts';
import { type ModelParts, readSampling, samplerOf, samplingText } from './sampling.ts';

/** Questions of one call that reach a person, and refusals after which no more do. */
const mostQuestions = 10;
const mostRefusals = 2;
/** What is shown of an answer to a server, in characters. */
const longestShown = 500;
/** Longest address that a person can look through, in characters. */
const longestAddress = 2000;

type Person = Pick<ApprovalContext, 'human' | 'policy'> & Partial<ModelParts>;

/**
 * Returns what asks the person for a server during one call, one question after the other. A server that asks without end is declined.
 * `show` passes events on.
 */
export function serverQuestions(
  { id }: ToolCall,
  person: Person,
  show: <Result>(events: AsyncGenerator<RunEvent, Result>) => Promise<Result>,
): NonNullable<ToolContext['askServer']> {
  const asked: Person = { ...person, human: whileAwaited(person.human) };
  let open: Promise<unknown> = Promise.resolve();
  let count = 0;
  let refused = 0;
  let isOver = false;
  const ask = async (wish: ServerWish, over: AbortSignal): Promise<ServerAnswer> => {
    if (over.aborted) return { action: 'cancel' };
    if (count >= mostQuestions || refused >= mostRefusals) {
      if (!isOver) await show(tooMany(wish));
      isOver = true;
      return { action: 'decline' };
    }
    const answer = await show(askForServer(wish, `${id}-ask-${++count}`, asked, over));
    if (answer.action !== 'accept') refused++;
    return answer;
  };
  return (wish, over) => {
    const answer = open.then(() => ask(wish, over)).catch((): ServerAnswer => ({ action: 'cancel' }));
    open = answer;
    return answer;
  };
}

/** Returns the person, who is not waited for when the question is over, whatever the frontend does. */
const whileAwaited = (human: Human): Human => ({
  ...human,
  async approve(request, signal) {
    try {
      return await untilAborted(human.approve(request, signal), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      return { allow: false, reason: new QuestionOver().message };
    }
  },
});

async function* tooMany({ server }: ServerWish): AsyncGenerator<RunEvent, void> {
  yield warning(
    sentence("The MCP server '{0}' asks too much during one call. It is not answered any more.", server),
  );
}

async function* askForServer(
  wish: ServerWish,
  callId: string,
  person: Person,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ServerAnswer> {
  if (wish.kind === 'sampling') return yield* sampleForServer(wish, callId, person, signal);
  const call: ToolCall = { id: callId, name: wish.kind === 'form' ? 'mcp_form' : 'mcp_open_url', input: {} };
  const question = wish.kind === 'form' ? formQuestion(wish, person) : urlQuestion(wish, person);
  if ('refusal' in question) {
    yield warning(question.refusal);
    return { action: 'decline', problem: spoken([question.refusal]) };
  }
  const { refusal, isSkipped, content } = yield* askPerson(call, question, person, signal);
  if (signal.aborted || isSkipped) return { action: 'cancel' };
  if (refusal !== undefined) return { action: 'decline' };
  if (!question.form) return { action: 'accept' };
  // The door has checked it. What does not fit would be sent in the person's name.
  if (!content || !answers(question.form, content)) {
    yield warning(
      sentence("The form of the MCP server '{0}' was declined, since it was not filled in.", wish.server),
    );
    return { action: 'decline' };
  }
  return { action: 'accept', content };
}

/** Has the model answer after a yes to the whole text. */
async function* sampleForServer(
  { server, params }: ServerWish,
  callId: string,
  person: Person,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ServerAnswer> {
  const { policy } = person;
  const sampler = samplerOf(person);
  const wanted = readSampling(params);
  if (!sampler || typeof wanted === 'string') {
    const why = typeof wanted === 'string' ? wanted : 'a recording answers no server';
    const refusal = sentence(
      "A question of the MCP server '{0}' to the model was refused: {1}.",
      server,
      why,
    );
    yield warning(refusal);
    return { action: 'decline', problem: spoken([refusal]) };
  }
  const sentences = [
    sentence(
      "The MCP server '{0}' of agent {1} asks {2} this and gets the answer. The model has no tools for it, and reads nothing of this conversation.",
      ...[server, agentOf(policy), sampler.model],
    ),
    sentence('It may take up to {0} tokens, which count towards the budget of the run.', wanted.maxTokens),
  ];
  const question: Ask = {
    ...asks('mcp.sampling', sentences),
    subject: samplingText(wanted),
    showsWhole: true,
  };
  const call: ToolCall = { id: callId, name: 'mcp_sampling', input: {} };
  const { refusal, isSkipped } = yield* askPerson(call, question, person, signal);
  if (signal.aborted || isSkipped) return { action: 'cancel' };
  if (refusal !== undefined) return { action: 'decline' };
  try {
    const sampled = yield* sampler.ask(wanted, signal);
    const text = shortened(sampled.text.trim(), longestShown);
    const shown = sentence("{0} answered the MCP server '{1}': {2}", sampler.model, server, text);
    yield { type: 'notice', level: 'info', ...asMessage(shown) };
    return { action: 'accept', sampled };
  } catch (error) {
    if (signal.aborted) return { action: 'cancel' };
    const why = error instanceof Error ? error.message : String(error);
    yield warning(sentence("The question of the MCP server '{0}' was not answered: {1}", server, why));
    return { action: 'decline', problem: 'The model did not answer.' };
  }
}

function formQuestion({ server, params }: ServerWish, { policy }: Person): Ask | { refusal: Sentence } {
  const form = readForm(params);
  if (typeof form === 'string')
    return {
      refusal: sentence("A form of the MCP server '{0}' was refused: {1}.", server, form),
    };
  const secret = secretAskedFor(form.message, form.fields);
  if (secret !== undefined)
    return {
      refusal: sentence(
        "A form of the MCP server '{0}' was refused: its field “{1}” asks for a password or a key. The protocol forbids that. Such a server has to open its own page.",
        server,
        secret,
      ),
    };
  const sentences = [
    sentence(
      "The MCP server '{0}' of agent {1} asks this. It gets what you fill in.",
      server,
      agentOf(policy),
    ),
  ];
  return { ...asks('mcp.form', sentences), subject: form.message, form: form.fields };
}

function urlQuestion(
  { server, params, opens }: Extract<ServerWish, { kind: 'url' }>,
  { policy }: Person,
): Ask | { refusal: Sentence } {
  const { url, message } = (params ?? {}) as { url?: unknown; message?: unknown };
  const address =
    typeof url === 'string' && url.length <= longestAddress && URL.canParse(url) ? new URL(url) : undefined;
  const kind = address && hostKind(address.hostname);
  const isSafe = address?.protocol === 'https:' || (address?.protocol === 'http:' && kind === 'loopback');
  const hidesWho = address !== undefined && (address.username !== '' || address.password !== '');
  if (!address || !kind || !isSafe || hidesWho || isNeverReached(kind))
    return {
      refusal: sentence(
        "The MCP server '{0}' wants an address opened that is not safe, which was refused: {1}",
        server,
        beginningOf(String(url), 300),
      ),
    };
  const says = typeof message === 'string' ? beginningOf(message, 1000) : '';
  const sentences = [
    opens
      ? sentence(
          "The MCP server '{0}' of agent {1} wants this address opened in your browser.",
          server,
          agentOf(policy),
        )
      : sentence(
          "The MCP server '{0}' of agent {1} wants you to open this address in your browser.",
          server,
          agentOf(policy),
        ),
    sentence('It leads to {0}.', address.host),
    ...(says === '' ? [] : [sentence('The server says: {0}', says)]),
  ];
  return { ...asks('mcp.url', sentences), subject: address.href };
}

const asks = (rule: string, sentences: readonly Sentence[]) => ({
  action: 'ask' as const,
  rule,
  reason: spoken(sentences),
  sentences,
  scopes: ['once'] as const,
});

const agentOf = ({ agent }: Person['policy']): string => agent?.name ?? 'telos';

const warning = (said: Sentence): RunEvent => ({ type: 'notice', level: 'warning', ...asMessage(said) });
