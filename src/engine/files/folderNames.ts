/** Names the folders that are not searched for skills. */

/** Prefix of folders that are being filled or removed beside the packs, so that they are not taken for packs. */
export const stagedPrefix = '.telos-';

const skipped = new Set(['.git', 'node_modules']);

export const isSkippedFolder = (name: string): boolean => skipped.has(name) || name.startsWith(stagedPrefix);
