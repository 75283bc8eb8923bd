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
  const { name, exports = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  return Object.entries(exports).map(([entry, target]) => {
    const file = posix.join(folder, target);
    return [posix.join(name, entry), { file, ...namesOf(file, readFileSync(join(root, file), 'utf8')) }];
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
 * Returns the code with each import of an entry in place of which it imports the files behind it. `pathOf` writes the path of a file.
 * @param {string} code
 * @param {ReturnType<typeof readEntries>} entries
 * @param {(file: string) => string} pathOf
 */
export function throughEntries(code, entries, pathOf) {
  return code.replace(
    /^(import|export) (type )?\{([^}]*)\} from '(@telos\/[^']+)';/gm,
    (all, word, type, list, specifier) => {
      const entry = entries.get(specifier);
      if (!entry?.names || type) return all;
      return list
        .split(',')
        .map(one => one.trim())
        .filter(one => one !== '' && !one.startsWith('type '))
        .map(item => {
          const [theirs, ours = theirs] = item.split(' as ');
          const later = entry.later.get(theirs);
          if (later) return `const ${ours} = () => import('${pathOf(later)}');`;
          const { file, name } = entry.names.get(theirs) ?? { file: entry.file, name: theirs };
          return `${word} { ${name} as ${ours} } from '${pathOf(file)}';`;
        })
        .join(' ');
    },
  );
}

/** @returns {import('esbuild').Plugin} Leads imports of entries to the files behind them. */
export function entriesApart(root) {
  return {
    name: 'entries apart',
    setup: ({ onLoad }) => {
      const entries = readEntries(root);
      onLoad({ filter: /[\\/](?:src|webview)[\\/].*\.tsx?$/, namespace: 'file' }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        if (!text.includes("'@telos/") || path.includes('node_modules')) return undefined;
        const contents = throughEntries(text, entries, file => join(root, file).replaceAll('\\', '/'));
        return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts', resolveDir: dirname(path) };
      });
    },
  };
}

/** Leads the imports of entries in built types, below `folder`, to their files: who installs Telos has its packages in one. */
function relateTypes(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.d.ts')) continue;
    const file = join(folder, name);
    const up = '../'.repeat(name.split(/[\\/]/).length - 1) || './';
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/(['"])@telos\/([\w/-]+)\1/g, `$1${up}$2.js$1`));
  }
}

if (import.meta.main) relateTypes(process.argv[2]);
