/** How the folders begin that are being put together or taken apart beside the packs, so that nobody takes one for a pack. */
export const stagedPrefix = '.telos-';
