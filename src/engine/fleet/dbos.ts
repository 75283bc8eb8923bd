/** Loads the durable engine, which is installed only where jobs go over a database. */
import { TelosError } from '../errors.ts';

export type Dbos = typeof import('@dbos-inc/dbos-sdk');

/** The version that this Telos is tested with. The one in package.json must be the same. */
const wanted = '@dbos-inc/dbos-sdk@5.3.0';

/** Returns the engine. Throws TelosError `config`, with what installs it, if it is not installed. */
export async function loadDbos(): Promise<Dbos> {
  // Its driver for PostgreSQL warns of its own next version, which is nothing to a person here.
  process.noDeprecation = true;
  try {
    return await import('@dbos-inc/dbos-sdk');
  } catch (error) {
    if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw new TelosError(
      'config',
      `Workers need a package that is not installed. Install it where Telos is installed: npm install ${wanted} (with --global if Telos is global).`,
    );
  }
}
