/** Which files of this folder run with every change, and which at night. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

export type Part = 'day' | 'night';

/** What is dear and proves once more, in another way, what the others prove. Each with what makes it dear. */
const night: Readonly<Record<string, string>> = {
  'planSteering.test.ts': 'seven plans, each run to an end; by day the engine and the command line do',
  'planDemo.test.ts': 'two windows more, and a plan from its card to its report',
  'planKeyboard.test.ts': 'a plan from its goal to the merge, which by day the mouse does',
  'day.test.ts':
    'a day in four themes, looked at in twelve states; most states are also tested by themselves',
  'german.test.ts': 'an editor of its own; localisation is also proved without one',
  'germanPlans.test.ts': 'a plan from its goal to the merge, looked at in nine places',
  'planKills.test.ts': 'kills the extension host, and waits for VS Code to start it again',
  'realSkills.test.ts': 'twelve published skills, each twice',
  'twoWindows.test.ts': 'two windows and two command lines at once',
  'walk.test.ts': 'the whole first hour, in two languages',
  'workers.test.ts': 'a database, a git server and a worker',
};

/** Returns the paths of the test files of a part, or of all. */
export function filesOf(part?: Part): string[] {
  const names = readdirSync(import.meta.dirname).filter(name => name.endsWith('.test.ts'));
  const gone = Object.keys(night).filter(name => !names.includes(name));
  if (gone.length > 0) throw new Error(`There is no ${gone.join(', ')} to run at night.`);
  return names
    .filter(name => part === undefined || part === (name in night ? 'night' : 'day'))
    .sort()
    .map(name => join(import.meta.dirname, name));
}
