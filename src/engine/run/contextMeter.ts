/** Estimates how many tokens a prompt has, and learns from the provider's own counts. */
import type { ContentBlock, ContextUse, DocumentBlock, Message } from '@telos/protocol/run';
import { defaultMaxTokens } from '../core/limits.ts';
import { blocksOf } from '../core/messages.ts';
import type { CompletionRequest, TokenCount } from '../core/ports.ts';
import { textOf } from './contextView.ts';

/** The parts of a request that count. */
export type Measured = Pick<CompletionRequest, 'system' | 'messages' | 'tools'>;

/** Characters of the first message that are neither the person's nor the conversation's. */
export interface FirstParts {
  skill: number;
  files: number;
  /** Characters at the end of the system text that come from files, and their names. */
  context?: { characters: number; names: readonly string[] };
}

/** Counts for an image, whatever the size of its file. In characters. */
const imageCharacters = 5_000;

/** Lengths of what has to be written to be measured. */
const written = new WeakMap<object, number>();

export class ContextMeter {
  /** Set once the model has written no summary. */
  summaryFailed = false;
  /** Set once the user knows that the model takes more than it is sent. */
  wholeSaid = false;
  /** Until the first count: English and code have fewer, other languages more. */
  #tokensPerCharacter = 0.3;
  #limit: number | undefined;
  readonly #window: number | undefined;
  readonly #first: FirstParts;

  /** `window` is undefined if it is not known. */
  constructor(window?: number, first: FirstParts = { skill: 0, files: 0 }) {
    this.#window = window;
    this.#first = first;
    this.#limit = window === undefined ? undefined : window - Math.min(defaultMaxTokens, window / 4);
  }

  /** Tokens that a prompt may have, so that an answer has room. Undefined if that is not known. */
  get limit(): number | undefined {
    return this.#limit;
  }

  tokensOf(request: Measured): number {
    return this.tokens(charactersOf(request));
  }

  tokens(characters: number): number {
    return Math.ceil(characters * this.#tokensPerCharacter);
  }

  characters(tokens: number): number {
    return Math.floor(tokens / this.#tokensPerCharacter);
  }

  /** The server has refused this prompt. It takes less than was thought. */
  refused(request: Measured): void {
    const less = Math.floor(this.tokensOf(request) * 0.8);
    this.#limit = Math.min(this.#limit ?? less, less);
  }

  /** Returns what a prompt was made of, by the count of its tokens. Later estimates are closer. */
  counted(request: Measured, count: TokenCount): ContextUse | undefined {
    const total = count.inputTokens + count.cacheReadTokens + count.cacheWriteTokens;
    const all = charactersOf(request);
    if (total === 0 || all === 0) return undefined;
    this.#tokensPerCharacter = total / all;
    const { characters: ofContext = 0, names = [] } = this.#first.context ?? {};
    const system = request.system.length - ofContext;
    const tools = toolCharacters(request) + sum(request.messages, message => sum(blocksOf(message), ofTools));
    const words = Math.max(0, all - system - ofContext - tools);
    const skill = Math.min(this.#first.skill, words);
    const files = Math.min(this.#first.files, words - skill) + ofContext;
    const [ofSystem, ofSkill, ofFiles, ofToolUse] = [system, skill, files, tools].map(part =>
      Math.round((part / all) * total),
    ) as [number, number, number, number];
    const conversation = Math.max(0, total - ofSystem - ofSkill - ofFiles - ofToolUse);
    return {
      ...(this.#window !== undefined && { window: this.#window }),
      ...(names.length > 0 && { read: names }),
      tokens: { system: ofSystem, skill: ofSkill, files: ofFiles, tools: ofToolUse, conversation },
    };
  }
}

const charactersOf = (request: Measured): number =>
  request.system.length + toolCharacters(request) + sum(request.messages, messageCharacters);

export const messageCharacters = (message: Message): number => sum(blocksOf(message), blockCharacters);

const toolCharacters = ({ tools }: Measured): number => sum(tools, writtenLength);

const ofTools = (block: ContentBlock): number =>
  block.type === 'tool_use' || block.type === 'tool_result' ? blockCharacters(block) : 0;

/** A page is as long as a picture, and about this long in the file. */
const pageLength = 50_000;

const documentCharacters = ({ source }: DocumentBlock): number =>
  imageCharacters * Math.max(1, Math.ceil(source.data.length / pageLength));

function blockCharacters(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return block.text.length;
    case 'image':
      return imageCharacters;
    case 'document':
      return documentCharacters(block);
    case 'thinking':
      return block.thinking.length + block.signature.length;
    case 'redacted_thinking':
      return block.data.length;
    case 'tool_use':
      return block.name.length + writtenLength(block.input);
    case 'tool_result': {
      const images = typeof block.content === 'string' ? 0 : block.content.length - 1;
      return textOf(block).length + images * imageCharacters;
    }
  }
}

function writtenLength(value: object): number {
  const known = written.get(value);
  if (known !== undefined) return known;
  const length = JSON.stringify(value).length;
  written.set(value, length);
  return length;
}

const sum = <Each>(all: readonly Each[], of: (each: Each) => number): number =>
  all.reduce((total, each) => total + of(each), 0);
