/** Implements `telos gallery build`: writes the skills of a catalogue as a site of plain files. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TelosError } from '@telos/engine/errors';
import { buildGallery, type Gallery } from '@telos/gallery/gallery';
import { UnclearSource } from '@telos/packs/install';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { sayProgress } from './offerText.ts';
import { typedPath } from './surroundings.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { exactText, lookErrorText, terminalJson, toType } from './terminalText.ts';

export interface GalleryOptions extends ConfigOptions {
  output?: string;
  from?: string;
  by?: string;
  json?: boolean;
}

/** Returns the exit code: 1 if nothing could be written, or if something of the catalogue is not on the site or cannot be read. */
export async function galleryBuildCommand(
  source: string,
  options: GalleryOptions,
  terminal: Terminal,
  samples: URL,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const folder = resolve(config.cwd, typedPath(options.output ?? 'gallery', terminal.surroundings));
  const use = async (signal: AbortSignal): Promise<number> => {
    const gallery = await buildGallery(source, config, {
      folder,
      assets: fileURLToPath(new URL('../gallery', samples)),
      signal,
      progress: event => sayProgress(event, terminal),
      ...(options.from !== undefined && { from: options.from }),
      ...(options.by !== undefined && { by: options.by }),
    });
    if (options.json) terminal.out(`${terminalJson({ ...gallery, folder })}\n`);
    else say(gallery, folder, terminal);
    return gallery.problems.length > 0 || gallery.skills === 0 ? 1 : 0;
  };
  const refused = (error: TelosError): number => {
    terminal.say(terminal.style.red(lookErrorText(error)));
    if (!(error instanceof UnclearSource)) return 1;
    for (const choice of error.choices) terminal.say(`  ${toType('gallery', 'build', choice)}`);
    return 2;
  };
  return interruptible(terminal, use, { onFirst: () => terminal.say('Stopping.'), refused });
}

function say(
  { packs, skills, measured, replays, problems }: Gallery,
  folder: string,
  terminal: Terminal,
): void {
  for (const problem of problems) terminal.say(terminal.style.yellow(exactText(problem)));
  if (skills === 0) {
    terminal.say('There is no skill to show, so nothing was written.');
    return;
  }
  const facts = `${counted(skills, 'skill')} of ${counted(packs, 'pack')}, ${measured} measured, ${replays} with a replay`;
  terminal.out(exactText(`Wrote ${folder}: ${facts}.\n`));
  terminal.say(exactText(`Open ${folder}/index.html in a browser, or put the folder on any web server.`));
}
