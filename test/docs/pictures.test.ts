/** Whether the pictures of README, of the store's page and of the walkthrough show the views as they are. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pictureSources, pictureSourcesFile } from '../vscode/pictureSources.ts';

describe('the pictures', () => {
  it('are not older than the views that they show', () => {
    const linesOf = (text: string): string[] => text.trim().split('\n');
    const then = linesOf(readFileSync(pictureSourcesFile, 'utf8'));
    const changed = linesOf(pictureSources()).filter(line => !then.includes(line));
    const files = changed.map(line => line.replace(/^\w+ +/, ''));
    assert.deepEqual(
      files,
      [],
      'These have changed since the pictures were taken. Take them again: `npm run pictures`.',
    );
  });
});
