/**
 * Reads the entries of the packages, and leads an import of one to the files behind it. The bundler splits by file: without this, who
 * imports one name of an entry would load all that it names.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** @returns {Map<string, import('./entriesBuild.mjs').Entry>} The entries of all packages below `root`, by the name that importers write. */
export function readEntries(root) {
  const folders = [...readdirSync(join(root, 'src')).map(name => `src/${name}`), 'webview'];
  const manifests = folders.filter(folder => existsSync(join(root, folder, 'package.json')));
  return new Map(manifests.flatMap(folder => entriesOf(root, folder)));
}

function entriesOf(root, folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const { name, exports = {}, sideEffects = true } = manifest;
  return Object.entries(exports).map(([entry, target]) => {
    const file = posix.join(folder, target);
    const names = namesOf(file, readFileSync(join(root, file), 'utf8'));
    return [posix.join(name, entry), { file, sideEffects, ...names }];
  });
}

/** Returns where each name of a file that only hands names on comes from; nothing for other files. */
function namesOf(file, text) {
  const names = new Map();
  const later = new Map();
  const own = text
    .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
    .replace(/export (type )?\{([^}]*)\} from '(\.[^']+)';/g, (_, __, list, from) => {
      for (const item of list
        .split(',')
        .map(one => one.trim().replace(/^type /, ''))
        .filter(Boolean)) {
        const [theirs, ours = theirs] = item.split(' as ');
        names.set(ours, { file: posix.join(posix.dirname(file), from), name: theirs });
      }
      return '';
    })
    .replace(/export const (\w+) = \(\) => import\('(\.[^']+)'\);/g, (_, name, from) => {
      later.set(name, posix.join(posix.dirname(file), from));
      return '';
    });
  return own.trim() === '' ? { names, later } : {};
}

/**
 * Returns the code with imports of the files behind the entries in place of imports of entries. `pathOf` writes the path of a file. Types
 * are left as they are, but with `withTypes`.
 * @param {string} code
 * @param {ReturnType<typeof readEntries>} entries
 * @param {(file: string) => string} pathOf
 */
export function throughEntries(code, entries, pathOf, withTypes = false) {
  return code.replace(
    /^(import|export) (type )?\{([^}]*)\} from '(@telos\/[^']+)';/gm,
    (all, word, type, list, specifier) => {
      const entry = entries.get(specifier);
      if (!entry?.names || (type && !withTypes)) return all;
      return list
        .split(',')
        .map(one => one.trim())
        .filter(one => one !== '' && (withTypes || !one.startsWith('type ')))
        .map(item => {
          const isType = type !== undefined || item.startsWith('type ');
          const [theirs, ours = theirs] = item.replace(/^type /, '').split(' as ');
          const later = entry.later.get(theirs);
          if (later) return `const ${ours} = () => import('${pathOf(later)}');`;
          const { file, name } = entry.names.get(theirs) ?? { file: entry.file, name: theirs };
          return `${word} ${isType ? 'type ' : ''}{ ${name} as ${ours} } from '${pathOf(file)}';`;
        })
        .join(' ');
    },
  );
}

/** @returns {import('esbuild').Plugin} Leads imports of entries to the files behind them. */
export function entriesApart(root) {
  return {
    name: 'entries apart',
    setup: ({ onLoad, onResolve }) => {
      const entries = readEntries(root);
      // Of this folder, wherever its dependencies lie.
      onResolve({ filter: /^@telos\// }, ({ path }) => {
        const { file, sideEffects } = entries.get(path) ?? {};
        return file && { path: join(root, file), sideEffects };
      });
      onLoad({ filter: /[\\/](?:src|webview)[\\/].*\.tsx?$/, namespace: 'file' }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        if (!text.includes("'@telos/") || path.includes('node_modules')) return undefined;
        const contents = throughEntries(text, entries, file => join(root, file).replaceAll('\\', '/'));
        return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts', resolveDir: dirname(path) };
      });
    },
  };
}

/** Leads the imports of entries in built types, below `folder`, to the files behind them: who installs Telos has its packages in one. */
function relateTypes(root, folder) {
  const entries = readEntries(root);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.d.ts')) continue;
    const file = join(folder, name);
    const up = '../'.repeat(name.split(/[\\/]/).length - 1) || './';
    const pathOf = source => `${up}${source.replace(/^src\//, '').replace(/\.ts$/, '.js')}`;
    const text = throughEntries(readFileSync(file, 'utf8'), entries, pathOf, true);
    writeFileSync(
      file,
      text.replace(
        /(['"])(@telos\/[\w/-]+)\1/g,
        (_, quote, entry) => `${quote}${pathOf(entries.get(entry).file)}${quote}`,
      ),
    );
  }
}

if (import.meta.main) relateTypes(import.meta.dirname, process.argv[2]);
