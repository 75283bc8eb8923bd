/** Keeps what this process knows of its MCP servers: which live, the tools they have, why one failed, and what they wrote. */
import type { Sentence } from '@telos/protocol/text';
import { endOf } from '@telos/protocol/text';
import type { McpOffers } from './offers.ts';
import type { McpToolListing } from './tools.ts';

/** What was found when a server was started or reached last. */
export interface ServerFacts {
  /** `sign-in`: it answers only after a sign-in. */
  state: 'ready' | 'failed' | 'sign-in';
  /** Why it is not ready, as a phrase. */
  error?: Sentence;
  tools: readonly Pick<McpToolListing, 'name' | 'description'>[];
  /** The skills that it serves. Undefined where they were not listed. */
  skills?: readonly Pick<McpToolListing, 'name' | 'description'>[];
  /** From its start to the list of its tools. */
  milliseconds: number;
}

/** A prompt or a resource, as `server:name`. */
export interface NamedOffer {
  word: string;
  description: string;
}

/** A server that a run uses now. */
export interface LiveServer {
  /** Ends it and starts it again. The run sees its tools as they are then. Never throws. */
  restart(): Promise<void>;
}

interface Page {
  facts?: ServerFacts;
  offers?: McpOffers;
  readonly live: Set<LiveServer>;
  head: string;
  tail: string;
  redact(text: string): string;
}

/** Most that is kept of what a server writes: this much of the beginning and of the end, in characters. */
const logKept = 64_000;

export class ServerBook {
  readonly #pages = new Map<string, Page>();
  readonly #listeners = new Set<() => void>();
  /** Set by a frontend that shows prompts and resources while a person types. They are then listed with each start. */
  wantsOffers = false;

  /** Calls `listener` whenever something has changed. Returns what ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns what was found last; undefined for a server that was not started yet. */
  facts(agent: string, server: string): ServerFacts | undefined {
    return this.#pages.get(keyOf(agent, server))?.facts;
  }

  /** Returns how many runs use the server now. */
  running(agent: string, server: string): number {
    return this.#pages.get(keyOf(agent, server))?.live.size ?? 0;
  }

  /** Returns the tools of all servers that have started. */
  tools(): { agent: string; server: string; tool: string }[] {
    return [...this.#pages].flatMap(([key, { facts }]) => {
      const [agent, server] = JSON.parse(key) as [string, string];
      return (facts?.tools ?? []).map(({ name: tool }) => ({ agent, server, tool }));
    });
  }

  /** Returns the prompts and resources of all servers that have started, by the words with which a request names them. */
  offers(): { prompts: NamedOffer[]; resources: NamedOffer[] } {
    const prompts = new Map<string, NamedOffer>();
    const resources = new Map<string, NamedOffer>();
    for (const [key, { offers }] of this.#pages) {
      const [, server] = JSON.parse(key) as [string, string];
      // Such a name cannot be typed.
      if (/[\s:/@]/.test(server)) continue;
      for (const { name, description } of offers?.prompts ?? [])
        prompts.set(`${server}:${name}`, { word: `${server}:${name}`, description });
      for (const { uri, name } of offers?.resources ?? [])
        resources.set(`${server}:${uri}`, { word: `${server}:${uri}`, description: name });
    }
    return { prompts: [...prompts.values()], resources: [...resources.values()] };
  }

  noteOffers(agent: string, server: string, offers: McpOffers): void {
    this.#page(agent, server).offers = offers;
  }

  /** What is not said anew of the same server stays as it is known: a run lists no skills. */
  note(agent: string, server: string, facts: ServerFacts): void {
    const page = this.#page(agent, server);
    const { skills } = page.facts ?? {};
    page.facts = { ...(skills && facts.state === 'ready' && { skills }), ...facts };
    this.#changed();
  }

  /** Notes that a run uses the server. Returns what says that it no longer does. */
  lives(agent: string, server: string, live: LiveServer): () => void {
    const page = this.#page(agent, server);
    page.live.add(live);
    this.#changed();
    return () => {
      if (page.live.delete(live)) this.#changed();
    };
  }

  /** Restarts the server in every run that uses it. */
  async restart(agent: string, server: string): Promise<void> {
    const live = this.#pages.get(keyOf(agent, server))?.live ?? [];
    await Promise.all([...live].map(one => one.restart()));
  }

  /** Returns what receives the server's output. `redact` removes secrets when the log is read. */
  writer(agent: string, server: string, redact: (text: string) => string): (text: string) => void {
    const page = this.#page(agent, server);
    page.redact = redact;
    return text => {
      const kept = text.slice(0, logKept - page.head.length);
      page.head += kept;
      page.tail = endOf(page.tail + text.slice(kept.length), logKept);
    };
  }

  /** Returns what the server has written besides its messages, without secrets; empty if it has written nothing. */
  log(agent: string, server: string): string {
    const { head = '', tail = '', redact = String } = this.#pages.get(keyOf(agent, server)) ?? {};
    return redact(tail.length === logKept ? `${head}\n[...]\n${tail}` : head + tail);
  }

  #page(agent: string, server: string): Page {
    const key = keyOf(agent, server);
    const known = this.#pages.get(key) ?? { live: new Set(), head: '', tail: '', redact: String };
    this.#pages.set(key, known);
    return known;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

const keyOf = (agent: string, server: string): string => JSON.stringify([agent, server]);
