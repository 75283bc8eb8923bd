/** What a sign-in at one MCP server has given out, in a place for secrets that several windows share. */
import { type Kept, keptIn } from './mcpSignInAnswers.ts';

/** A place for secrets. A value of undefined forgets. */
export interface SecretPlace {
  read(name: string): Promise<string | undefined>;
  write(name: string, value: string | undefined): Promise<void>;
}

export class KeptSignIn {
  readonly #place: SecretPlace;
  readonly #name: string;
  readonly #learn: (secrets: readonly string[]) => void;
  #kept: Promise<Kept> | undefined;

  /** `learn` is told what must not be shown, as soon as it is known. */
  constructor(place: SecretPlace, name: string, learn: (secrets: readonly string[]) => void) {
    this.#place = place;
    this.#name = name;
    this.#learn = learn;
  }

  read(): Promise<Kept> {
    this.#kept ??= this.#place.read(this.#name).then(text => {
      const kept = keptIn(text);
      this.#remember(kept);
      return kept;
    });
    return this.#kept;
  }

  /** As it lies there now: another window may have signed in, or renewed it. */
  again(): Promise<Kept> {
    this.#kept = undefined;
    return this.read();
  }

  async write(kept: Kept): Promise<void> {
    this.#kept = Promise.resolve(kept);
    this.#remember(kept);
    await this.#place.write(this.#name, JSON.stringify(kept));
  }

  #remember({ tokens, client }: Kept): void {
    const given = [tokens?.access_token, tokens?.refresh_token, tokens?.id_token, client?.client_secret];
    this.#learn(given.filter(secret => secret !== undefined));
  }
}
