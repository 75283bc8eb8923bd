/**
 * Seals what this machine writes into the folder of a plan. A repository, an archive or a shared folder can bring files along that look
 * the same; without the seal they are no words of the person.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { createWhole, makeOwnFolders, readRegularFile } from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';

const keyShape = /^[0-9a-f]{64}$/;

const keyFile = (dataDir: string): string => join(dataDir, 'plans', 'machine.key');

export class MachineSeal {
  /** The key, which no plan has in its folder. */
  readonly #file: string;
  #key: Buffer | undefined;

  constructor(dataDir: string) {
    this.#file = keyFile(dataDir);
  }

  /** Makes the key of this machine if there is none. Throws TelosError `config` if it cannot be made or read. */
  async ready(): Promise<void> {
    if (this.#read()) return;
    try {
      makeOwnFolders(dirname(this.#file));
      await createWhole(this.#file, `${randomBytes(32).toString('hex')}\n`);
    } catch (error) {
      throw this.#unusable(error);
    }
    if (!this.#read()) throw this.#unusable();
  }

  /** Gives another data folder of the same person the key. Does nothing there if it has one. Throws TelosError `config`. */
  async lend(dataDir: string): Promise<void> {
    await this.ready();
    const file = keyFile(dataDir);
    try {
      makeOwnFolders(dirname(file));
      await createWhole(file, `${this.#read()!.toString('hex')}\n`);
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  /** Returns the JSON of an object with the seal in it. What it is about belongs to it: elsewhere the seal is none. Call `ready` before. */
  sealed(about: string, json: string): string {
    const key = this.#read();
    if (!key) throw this.#unusable();
    return `${json.slice(0, -1)},"seal":"${markOf(key, about, json).toString('base64url')}"}`;
  }

  /** Returns the JSON without its seal, or undefined if this machine did not seal it. */
  opened(about: string, text: string): string | undefined {
    const [, body, mark = ''] = /^(.*),"seal":"([\w-]{43})"\}\s*$/s.exec(text) ?? [];
    const key = this.#read();
    if (body === undefined || !key) return undefined;
    const json = `${body}}`;
    return timingSafeEqual(markOf(key, about, json), Buffer.from(mark, 'base64url')) ? json : undefined;
  }

  #read(): Buffer | undefined {
    if (this.#key) return this.#key;
    try {
      const text = readRegularFile(this.#file, 1_024).toString('utf8').trim();
      if (keyShape.test(text)) this.#key = Buffer.from(text, 'hex');
    } catch {
      // There is none yet.
    }
    return this.#key;
  }

  #unusable(cause?: unknown): TelosError {
    return new TelosError(
      'config',
      [
        sentence('{0} holds no key with which Telos could seal the steps of a plan.', this.#file),
        sentence('Delete the file, and make sure that its folder can be written.'),
      ],
      { cause },
    );
  }
}

const markOf = (key: Buffer, about: string, json: string): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify([about, json]))
    .digest();
