/** Tells by its name which file holds code, and how much of a file is read. */

/** In bytes. Larger files are not read; no person would read a script of that size. */
export const longestRead = 512 * 1024;

/** Code that programs load and that a person cannot read. */
export const compiledEnding =
  /\.(py[cdo]|so(\.\d+)*|dylib|dll|node|exe|com|class|jar|war|wasm|luac|beam|elc|[oa])$/i;
export const scriptEnding = /\.(sh|bash|zsh|fish|py|js|mjs|cjs|ts|mts|rb|pl|php|ps1|bat|cmd)$/i;
