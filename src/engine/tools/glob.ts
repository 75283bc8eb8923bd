/** The tool that finds files by their names. */
import { orProblem, pathProperty, readableFolders, shownPath, targetOf } from './files.ts';
import { globMatcher, longestGlob } from './globPattern.ts';
import { escapeInvisible, grouped } from './plainText.ts';
import type { Tool } from './tool.ts';
import { type WalkState, walkFiles } from './walkFiles.ts';

/** Names of one call. */
const maxFiles = 1000;
/** How long what is found beyond that is still counted, in milliseconds. */
export const countTime = 1_000;

export const globTool: Tool = {
  definition: {
    name: 'glob',
    description:
      'Finds files by a pattern of their path, such as **/*.md or src/*.{ts,tsx}; ** is any number of folders. Returns paths, sorted, at most 1,000. It does not look into .git and node_modules and follows no links.',
    inputSchema: {
      type: 'object',
      properties: {
        pattern: { type: 'string', description: 'The pattern, relative to the folder that is searched.' },
        path: pathProperty('The folder to search; the working folder when left out.'),
      },
      required: ['pattern'],
      additionalProperties: false,
    },
  },
  access: 'read',
  longest: { pattern: longestGlob },
  execute: (input, context) =>
    orProblem(context, async () => {
      const root = await targetOf(input['path'] ?? '.', context, readableFolders(context));
      const pattern = String(input['pattern']);
      const matches = globMatcher(pattern);
      const state: WalkState = { isCut: false };
      const prefix = await prefixOf(root, context);
      const found: string[] = [];
      let count = 0;
      let countUntil = Number.POSITIVE_INFINITY;
      for await (const { name } of walkFiles(root, context, state)) {
        if (!matches(name)) continue;
        count++;
        if (found.length < maxFiles) found.push(escapeInvisible(prefix + name));
        if (count === maxFiles) countUntil = Date.now() + countTime;
        if (count > maxFiles && Date.now() > countUntil) {
          state.isCut = true;
          break;
        }
      }
      if (found.length === 0)
        return {
          content: `No file matches ${pattern}${state.isCut ? ' among those looked at' : ''}.`,
          isError: false,
        };
      const notes: string[] = [];
      if (state.isCut)
        notes.push(`[Cut: there may be more than these ${grouped(found.length)}. Search a smaller folder.]`);
      else if (count > found.length)
        notes.push(
          `[Cut: these are ${grouped(found.length)} of ${grouped(count)} files. Search a smaller folder.]`,
        );
      return { content: [...found.sort(), ...notes].join('\n'), isError: false };
    }),
};

/** What stands before a name below `root`, so that read_file takes the whole as a path. */
export async function prefixOf(root: string, context: Parameters<typeof shownPath>[1]): Promise<string> {
  const shown = await shownPath(root, context);
  return shown === '' ? '' : `${shown.replaceAll('\\', '/').replace(/\/$/, '')}/`;
}
