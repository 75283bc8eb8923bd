/** What the owner of a worker has accepted of other people's plans: cards by their digest. What waits is kept beside, to be looked at. */

import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { createWhole, makeOwnFolders, readSettings, writeOwn } from '@telos/engine/files';
import { digestOf } from '@telos/plans/state';

/** A card that came with an order. */
export interface WaitingCard {
  digest: string;
  plan: string;
  repository: string;
  /** What is accepted: see `boundLines`. */
  lines: readonly string[];
  /** The texts of roles that the lines name. */
  roles: readonly { file: string; text: string }[];
}

/** More would only fill the disk. */
const mostWaiting = 50;

type Place = Pick<Config, 'dataDir'>;

const folderOf = ({ dataDir }: Place): string => join(dataDir, 'worker-cards');
const fileOf = (place: Place, name: string): string => join(folderOf(place), `${name}.json`);
export const isDigest = (text: string): boolean => /^[\da-f]{64}$/.test(text);

/** Returns true if the owner has accepted exactly these lines. */
export function isWorkerCardAccepted(place: Place, lines: readonly string[]): boolean {
  return readCard(place, digestOf([...lines]))?.accepted === true;
}

function readCard(place: Place, name: string): { accepted?: boolean } | undefined {
  try {
    return Object(JSON.parse(readSettings(fileOf(place, name))));
  } catch {
    return undefined;
  }
}

/** Keeps a card for its owner to look at. Throws errors of the file system. */
export async function noteWaitingCard(place: Place, card: WaitingCard): Promise<void> {
  if (waitingCards(place).length >= mostWaiting) return;
  makeOwnFolders(folderOf(place));
  await createWhole(fileOf(place, `${card.digest}.waiting`), `${JSON.stringify(card, undefined, 2)}\n`);
}

/** Returns the cards of refused orders, which wait to be accepted. */
export function waitingCards(place: Place): WaitingCard[] {
  let names: string[];
  try {
    names = readdirSync(folderOf(place));
  } catch {
    return [];
  }
  return names.flatMap(name => {
    const [, digest] = /^([\da-f]{64})\.waiting\.json$/.exec(name) ?? [];
    const card =
      digest === undefined ? undefined : (readCard(place, `${digest}.waiting`) as WaitingCard | undefined);
    return card && digestOf([...(card.lines ?? [])]) === digest ? [{ ...card, digest }] : [];
  });
}

/** Accepts the card of that digest. Throws errors of the file system. */
export async function acceptWorkerCard(place: Place, digest: string): Promise<void> {
  makeOwnFolders(folderOf(place));
  const text = JSON.stringify({ accepted: true, at: new Date().toISOString() });
  await writeOwn(fileOf(place, digest), `${text}\n`);
  await rm(fileOf(place, `${digest}.waiting`), { force: true });
}
