/** Folders in which nobody looks for skills. */

/** How the folders begin that are being put together or taken apart beside the packs, so that nobody takes one for a pack. */
export const stagedPrefix = '.telos-';

const skipped = new Set(['.git', 'node_modules']);

export const isSkippedFolder = (name: string): boolean => skipped.has(name) || name.startsWith(stagedPrefix);
