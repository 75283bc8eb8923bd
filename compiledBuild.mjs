/** Splits a built file of the command line in two, so that `src/cli/compiledCode.ts` loads it with compiled code. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { Script } from 'node:vm';

/**
 * Returns a script, which has all of the code and is a function of what it needs, and a module of the file's name that loads it and has its
 * exports. `text` is what esbuild has made: its imports name files beside it, and its exports stand at the end.
 */
export function splitForCache(file, text) {
  const parts = new Set();
  let exported = [];
  const body = text
    .trim()
    .replace(/import(?:\{([^}]*)\}from)?"(\.\/[^"]+)";?/g, (_, list, from) => {
      parts.add(from);
      return list
        ? `const{${pairs(list).map(([theirs, ours]) => `${theirs}:${ours}`)}}=parts["${from}"];`
        : '';
    })
    .replace(/export\{([^}]*)\};?$/, (_, list) => {
      exported = pairs(list);
      return `return{${exported.map(([ours, theirs]) => `${theirs}:${ours}`)}};`;
    })
    .replaceAll('import.meta.url', 'here')
    .replace(/\bimport\("(?=\.\/|node:)/g, 'load("');
  const code = `(function(require,parts,here,load){"use strict";${body}})`;
  const left = /\bimport\(["`\w$].{0,60}/.exec(code);
  if (left) throw new Error(`${file}: '${left[0]}' is left.`);
  // Throws for any other import, and for an export.
  new Script(code, { filename: file });
  const list = [...parts];
  // The name of the file was chosen before its code was final, so two builds can share it.
  const digest = createHash('sha256').update(code).digest('hex').slice(0, 16);
  const shim = [
    'import{loadCompiled}from"./compiledCode.js";',
    ...list.map((from, index) => `import*as p${index} from"${from}";`),
    `const{${exported.map(([, theirs], index) => `${theirs}:e${index}`)}}=`,
    `loadCompiled(import.meta.url,{${list.map((from, index) => `"${from}":p${index}`)}},one=>import(one),"${digest}");`,
    `export{${exported.map(([, theirs], index) => `e${index} as ${theirs}`)}};`,
  ].join('');
  return { code, shim, codeFile: file.replace(basename(file), basename(file).replace(/\.js$/, '.code')) };
}

/** Returns the names on both sides of each `as`. */
const pairs = list =>
  list
    .split(',')
    .filter(Boolean)
    .map(one => one.split(' as '))
    .map(([first, second = first]) => [first, second]);
